package schedule

import "github.com/switchboard-run/switchboard/contract"

// The topics that anyone may schedule.
const (
	TopicNotify     = contract.TopicUserNotify
	TopicTask       = contract.TopicAgentTask
	TopicBackground = contract.TopicAgentBackground
)
