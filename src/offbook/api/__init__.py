"""The front door. `session_requests` and `agent_requests` say what each verb takes, `verbs` is the table that every
surface is made from; the services beside them are what the verbs do that no other part of the package does."""
