package telegramchannel

import (
	"fmt"
	"strconv"
	"strings"
)

// target is the chat of a message, and in a forum its topic.
type target struct {
	chat  int64
	topic int
}

// parseTarget parses a conversation and a thread.
func parseTarget(conversation, thread string) (target, error) {
	var p target
	var err error
	if p.chat, err = strconv.ParseInt(conversation, 10, 64); err != nil || p.chat == 0 {
		return p, fmt.Errorf("%q is not a Telegram chat id", conversation)
	}
	if thread != "" {
		if p.topic, err = strconv.Atoi(thread); err != nil {
			return p, fmt.Errorf("%q is not a Telegram topic id", thread)
		}
	}
	return p, nil
}

// group reports whether the chat is a group.
func (p target) group() bool { return p.chat < 0 }

func (p target) conversation() string { return strconv.FormatInt(p.chat, 10) }

func (p target) thread() string {
	if p.topic == 0 {
		return ""
	}
	return strconv.Itoa(p.topic)
}

// parseMessageID parses a message id with or without its chat; 0: none.
func parseMessageID(id string) int {
	n, err := strconv.Atoi(id[strings.LastIndexByte(id, '/')+1:])
	if err != nil {
		return 0
	}
	return n
}
