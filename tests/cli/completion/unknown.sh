tare completion tcsh
