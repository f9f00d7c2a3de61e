# no escape sequence reaches a pipe, whatever the command
{ tare help; tare version; tare doctor --quick; tare nonsense; } 2>&1 | grep -c "$(printf '\033')"
