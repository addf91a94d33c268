"""Drop-ins for what a team already uses; each is imported only when it is used.

================  ===================================================================================
`chat`            what a chat call asks the guard to do, whom the host trusts, and results as completions
`openai`          `stepguard.wrap`: an OpenAI-style client whose chat completions can run guarded
`dbos`            DBOS: runs in queues, carried out by workers on many machines
`decorator`       `stepguard.guarded`: a function that calls a model, as a guarded procedure
`langchain`       LangChain: an agent middleware, with which calls that ask for a procedure run guarded
`langgraph`       LangGraph: a procedure as a node of a graph
`mcp`             an MCP server: verify a step, run a procedure, audit a transcript
`openai_agents`   OpenAI Agents SDK: a procedure as a tool, and checked outputs of other tools
`outputs`         outputs of agents and tools, held against the steps of a procedure
`pydantic_ai`     pydantic-ai: an agent whose requests run guarded, or whose output is checked
`support`         refuses a procedure of which no run could be strong enough, where it is given
================  ===================================================================================
"""
