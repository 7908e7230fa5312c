"""prepare -> answer -> judge over the cases of a cell; the record store; resume."""
