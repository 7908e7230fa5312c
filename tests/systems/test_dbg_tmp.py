from .conftest import *
from .test_mem0 import extraction
def test_x(build):
    model=ScriptedModel(extraction)
    d=build("mem0",infer=True,model=model,top_k=1); d.remember(conversation())
    print(d.system._ids, extraction([dict(m) for m in model.calls[-2][0].messages()]))
    print(d.system._memory.search("cake",filters={"user_id":"conv-26"},threshold=0))
