"""The openai package: `stepguard.wrap`, a client whose chat completions run guarded where they ask for a procedure."""
