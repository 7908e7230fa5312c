"""ForgetEval's form: facts, mutations, and strings that may and may not be found afterwards."""
