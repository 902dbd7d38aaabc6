package agent

import (
	"regexp"
	"strings"
	"sync"
	"unicode"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
)

// maxSender is the number of characters of a sender's name in a request.
const maxSender = 64

// render returns the text of an input, note, context or summary in a request.
func render(e *busv1.Entry, group bool, limit int) string {
	text := cutText(e.GetText(), limit)
	if e.GetKind() != contract.EntryInput {
		return labelled(e.GetKind(), senderName(e.GetSender(), "switchboard"), text)
	}
	switch kind := e.GetInputKind(); kind {
	case contract.InputUser, "":
		return quoted(e) + written(e, group, text)
	case contract.InputRecord:
		if e.GetQuote() != nil {
			kind = "reaction"
		}
		return quoted(e) + labelled(kind, senderName(e.GetSender(), "unknown"), text)
	case contract.InputTask, contract.InputMessage, contract.InputResult, contract.InputNotice:
		return labelled(kind, senderName(e.GetSender(), "unknown"), text)
	default:
		return labelled(contract.InputNotice, senderName(e.GetSender(), "unknown"), text)
	}
}

// quoted is the earlier message that an input answers, or reacts to; empty: none.
func quoted(e *busv1.Entry) string {
	q := e.GetQuote()
	if q == nil {
		return ""
	}
	return labelled("quoted", senderName(q.GetSender(), "you"), cutText(q.GetText(), contract.MaxQuote)) + "\n"
}

// written is a text that a person wrote or passed on. What others wrote, and what
// could be taken for a label, is data.
func written(e *busv1.Entry, group bool, text string) string {
	sender := senderName(e.GetSender(), "unknown")
	switch {
	case e.GetForwardedFrom() != "":
		text = labelled("forwarded", senderName(e.GetForwardedFrom(), "unknown"), text)
	case label().MatchString(text), group && speaker().MatchString(text):
		return labelled("text", sender, text)
	}
	if group {
		return sender + ": " + text
	}
	return text
}

// They are compiled when an agent hears something: each process has them.
var (
	// label matches a line that could be the label of data: [task from lead], [now].
	label = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?im)^[\s\p{Cf}]*\[\s*(\pL+\s+from\b|[\pL ]+\]\s*$)`)
	})
	// speaker matches a later line that could be what another person of a group said.
	speaker = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\n[\s\p{Cf}]*\pL[^\n:]{0,63}:\s`)
	})
)

// labelled encloses data from a sender in fences that the text cannot close: they are
// longer than any run of their character in it.
func labelled(kind, sender, text string) string {
	longest, run := 0, 0
	for i := range len(text) {
		if text[i] != '~' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	fence := strings.Repeat("~", max(3, longest+1))
	return "[" + kind + " from " + sender + "]\n" + fence + "\n" + text + "\n" + fence
}

// senderName returns a sender's name in one line without characters that could end a
// label, or fallback if nothing is left of it.
func senderName(sender, fallback string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r == '[', r == ']', r == ':', r == '~', r == '\n':
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, sender)
	name = cutRunes(strings.Join(strings.Fields(name), " "), maxSender)
	if name == "" {
		return fallback
	}
	return name
}
