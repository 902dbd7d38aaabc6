package schedule

import (
	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/topic"
)

// The kernel's topics that can be scheduled. Topics of extensions can be
// scheduled too.
const (
	TopicNotify     = contract.TopicUserNotify
	TopicTask       = contract.TopicAgentTask
	TopicBackground = contract.TopicAgentBackground
)

func systemTopic(name string) bool {
	return name == TopicNotify || name == TopicTask || name == TopicBackground
}

// allowedTopic reports whether a topic can be scheduled. Others would let a
// schedule forge messages of people, commands, inputs and sends.
func allowedTopic(name string) bool {
	return systemTopic(name) || topic.ValidTopic(name) && !topic.Reserved(topic.Owner(name))
}
