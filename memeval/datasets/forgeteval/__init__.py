"""ForgetEval's format: facts, mutations, and strings that must or must not be found afterwards."""
