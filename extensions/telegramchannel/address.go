package telegramchannel

import (
	"fmt"
	"strconv"
	"strings"
)

// place is where a message goes: a chat, and in a forum one of its topics.
type place struct {
	chat  int64
	topic int
}

// address reads a conversation and thread as the kernel keeps them.
func address(conversation, thread string) (place, error) {
	var p place
	var err error
	if p.chat, err = strconv.ParseInt(conversation, 10, 64); err != nil || p.chat == 0 {
		return p, fmt.Errorf("%q is not the address of a Telegram chat", conversation)
	}
	if thread != "" {
		if p.topic, err = strconv.Atoi(thread); err != nil {
			return p, fmt.Errorf("%q is not a topic of a Telegram chat", thread)
		}
	}
	return p, nil
}

// group reports whether several people are in the chat.
func (p place) group() bool { return p.chat < 0 }

func (p place) conversation() string { return strconv.FormatInt(p.chat, 10) }

func (p place) thread() string {
	if p.topic == 0 {
		return ""
	}
	return strconv.Itoa(p.topic)
}

// messageID reads a message id, with or without its chat in front; 0 is none.
func messageID(id string) int {
	n, err := strconv.Atoi(id[strings.LastIndexByte(id, '/')+1:])
	if err != nil {
		return 0
	}
	return n
}
