"""Drop-ins for what a team already uses; one file each, imported only when used.

====================  ===============================================================================
`chat`                finds a procedure and its input values in chat messages
`chat_answers`        a result as the body of a chat completion, whole or in chunks
`openai_client`       `stepguard.wrap`: an OpenAI-style client whose chat completions run guarded
`decorator`           `stepguard.guarded`: a function that calls a model, as a guarded procedure
`langchain`           LangChain: an agent middleware, with which calls that ask for a procedure run guarded
`langgraph`           LangGraph: a procedure as a node of a graph
`mcp_server`          an MCP server: verify a step, run a procedure, audit a transcript
`openai_agents`       OpenAI Agents SDK: a procedure as a tool, and checked outputs of other tools
`opentelemetry`       runs as spans of OpenTelemetry, and verdicts as their events
`outputs`             outputs of agents and tools, held against the steps of a procedure
`pydantic_ai`         pydantic-ai: an agent whose requests run guarded, or whose output is checked
====================  ===============================================================================
"""
