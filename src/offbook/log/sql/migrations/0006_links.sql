-- All links of an agent are read together, the newest first: for that they are found by their agent.
CREATE INDEX supersessions_by_agent ON supersessions (agent, at);
