package slackchannel

import (
	"fmt"
	"strings"
)

// target is a conversation, and in it a thread.
type target struct{ channel, thread string }

// isConversation reports whether a text is the id of a conversation, such as C024BE91L.
func isConversation(id string) bool {
	return len(id) > 1 && strings.ContainsRune("CDG", rune(id[0])) &&
		!strings.ContainsFunc(id, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '0' || r > '9') })
}

// isTime reports whether a text is the time of a message, such as 1700000000.000100.
func isTime(ts string) bool {
	seconds, fraction, ok := strings.Cut(ts, ".")
	digits := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
	return ok && digits(seconds) && digits(fraction)
}

// parseTarget parses a conversation, a thread and the message that is answered. An answer
// to a reply goes to its thread.
func parseTarget(conversation, thread, replyTo string) (target, error) {
	to := target{channel: conversation, thread: thread}
	if !isConversation(conversation) {
		return to, fmt.Errorf("%q is not the id of a Slack conversation", conversation)
	}
	if thread == "" {
		to.thread, _, _ = strings.Cut(replyTo, "/")
		if !strings.Contains(replyTo, "/") || !isTime(to.thread) {
			to.thread = ""
		}
	} else if !isTime(thread) {
		return to, fmt.Errorf("%q is not the id of a Slack thread", thread)
	}
	return to, nil
}

// messageID is the id of a message of a person: its time, after that of the assistant's
// message whose thread it is in.
func messageID(ts, repliesTo string) string {
	if repliesTo == "" {
		return ts
	}
	return repliesTo + "/" + ts
}

// providerID is the id of a message of the assistant.
func providerID(channel, ts string) string { return channel + "/" + ts }
