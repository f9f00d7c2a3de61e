# text from outside cannot steer the terminal
tare "$(printf 'evil\033[31mred\007')"
