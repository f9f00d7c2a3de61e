# mistakes in tare.yaml name the line
printf 'suite:\n  - name: a\n    batch: 4\n' >tare.yaml; tare bench; echo $?
printf 'bench:\n  budgt: 4s\n' >tare.yaml; tare bench; echo $?
printf 'suite: [\n' >tare.yaml; tare bench; echo $?
printf 'suite:\n  - {command: "true", bogus: 1}\n' >tare.yaml; tare bench; echo $?
