"""A memory as an MCP server over stdio: pip install 'mcp<2'."""

from mcp.server.fastmcp import FastMCP

server = FastMCP("memory", log_level="ERROR")
memories: dict[str, list[dict]] = {}


def words(text: str) -> set[str]:
    return set("".join(c if c.isalnum() else " " for c in text.lower()).split())


@server.tool()
def add_memory(text: str, user: str, turns: list[str]) -> str:
    memories.setdefault(user, []).append({"text": text, "turns": turns})
    return "stored"


@server.tool()
def search_memory(query: str, user: str, limit: int) -> dict:
    asked = words(query)
    best = sorted(memories.get(user, []), key=lambda one: -len(asked & words(one["text"])))
    return {"memories": best[:limit]}


@server.tool()
def forget_memory(about: str, user: str) -> dict:
    kept = [one for one in memories.get(user, []) if not words(about) <= words(one["text"])]
    removed = len(memories.get(user, [])) - len(kept)
    memories[user] = kept
    return {"removed": removed}


if __name__ == "__main__":
    server.run()
