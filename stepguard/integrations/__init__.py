"""Drop-ins for what a team already uses; one file each, imported only when used.

====================  ===============================================================================
`chat`                finds a procedure and its input values in chat messages
`chat_answers`        a result as the body of a chat completion, whole or in chunks
`openai_client`       `stepguard.wrap`: an OpenAI-style client whose chat completions run guarded
`decorator`           `stepguard.guarded`: a function that calls a model, as a guarded procedure
====================  ===============================================================================
"""
