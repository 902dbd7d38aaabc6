package schedule

import (
	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/topic"
)

// The topics of the kernel that may be scheduled; every topic of an extension
// may be as well.
const (
	TopicNotify     = contract.TopicUserNotify
	TopicTask       = contract.TopicAgentTask
	TopicBackground = contract.TopicAgentBackground
)

func systemTopic(name string) bool {
	return name == TopicNotify || name == TopicTask || name == TopicBackground
}

// allowedTopic keeps schedules from forging messages of people, commands,
// inputs and sends.
func allowedTopic(name string) bool {
	return systemTopic(name) || topic.ValidTopic(name) && !topic.Reserved(topic.Owner(name))
}
