// Package naming says what sessions are in words that people and models can do
// something with. Inside, sessions are known by the keys that whoever made them
// has chosen: "task:t1:s5:a" is "task a for main of telegram_channel 1001".
//
// A key of a form that is not known here is its own name. Names are for reading:
// nothing is found by them, and two sessions may have the same.
package naming

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Audience is who reads a name.
type Audience int

const (
	// Owner may know where a conversation takes place.
	Owner Audience = iota
	// Model must not see an address: conversations are named by the ids of their
	// sessions, and jobs not at all.
	Model
)

// deepest bounds the tasks that stand in a row in a name.
const deepest = 8

// Session is what a session is.
func Session(r journal.Reader, s *journal.Session, reader Audience) (string, error) {
	return name(r, s, reader, deepest)
}

func name(r journal.Reader, s *journal.Session, reader Audience, left int) (string, error) {
	parts := strings.Split(s.Key, ":")
	switch kind, n := parts[0], len(parts); {
	case s.Conversation != 0:
		return conversation(r, s, reader)
	case kind == "link" && n == 3:
		return "link " + plain(parts[1]) + " → " + plain(parts[2]), nil
	case kind == "link" && n == 4: // the session where others read along
		of, err := other(r, journal.ParseSessionID(parts[3]), parts[3], reader, left)
		return "link " + plain(parts[1]) + " → " + plain(parts[2]) + of, err
	case kind == "job" && reader == Model:
		return "job", nil
	case kind == "job" && n > 1 && parts[n-1] != "":
		return "job " + plain(parts[n-1]), nil
	case kind == "task" && n == 4: // the id, the session of the conversation, the name
		by, err := requester(r, s)
		if err != nil {
			return "", err
		}
		of, err := other(r, journal.ParseSessionID(parts[2]), parts[2], reader, left)
		return "task " + plain(parts[3]) + " for " + by + of, err
	case kind == "task" && n == 2: // the call that gave it
		call, err := r.Call(journal.ParseCallID(parts[1]))
		if err != nil || call == nil {
			return "task", err
		}
		of, err := other(r, call.Session, journal.SessionID(call.Session), reader, left)
		return "task" + strings.Replace(of, " of ", " for ", 1), err
	}
	return s.Key, nil
}

// plain is a part of a key as it was before it became one.
func plain(part string) string {
	if s, err := url.PathUnescape(part); err == nil {
		return s
	}
	return part
}

// requester is who gave a task: the sender of its first input.
func requester(r journal.Reader, s *journal.Session) (string, error) {
	rows, err := r.HistoryBefore(s.ID, 2, 1)
	if err != nil {
		return "", fmt.Errorf("find out who gave a task: %w", err)
	}
	if len(rows) == 1 && rows[0].GetInputKind() == contract.InputTask && rows[0].GetSender() != "" {
		return rows[0].GetSender(), nil
	}
	return "an agent", nil
}

// other is " of " and another session.
func other(r journal.Reader, id int64, short string, reader Audience, left int) (string, error) {
	s, err := r.Session(id)
	if err != nil {
		return "", err
	}
	if s == nil || left == 0 || reader == Model && s.Conversation != 0 {
		return " of " + short, nil
	}
	of, err := name(r, s, reader, left-1)
	return " of " + of, err
}

func conversation(r journal.Reader, s *journal.Session, reader Audience) (string, error) {
	c, err := r.Conversation(s.Conversation)
	switch {
	case err != nil:
		return "", err
	case c == nil:
		return s.Key, nil
	case reader == Model:
		return "conversation " + journal.SessionID(s.ID), nil
	}
	where := c.Channel + " " + c.Address
	if c.Thread != "" {
		where += " thread " + c.Thread
	}
	return where, nil
}
