package admin

import (
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
)

// Title returns the kind and name of a step, on one line, in a language: an IETF tag, or
// nothing for English. It calls mark for the parts that matter most.
func (n *Node) Title(language string, mark func(string) string) string {
	say := func(text string, args ...any) string { return words.Say(language, text, args...) }
	switch {
	case n.Kind == KindStory:
		return n.ID + " " + n.input(language, mark)
	case n.Kind == KindSent:
		return say("%s to %s %s", n.ID, mark(strings.TrimPrefix(n.Name, contract.TopicChannelSend)),
			conversationIn(language, n.Conversation))
	case n.Kind == KindEvent:
		s := n.ID + " " + mark(n.Name)
		if n.Source != "" && n.Source != "kernel" {
			s += say(" from %s", n.Source)
		}
		if n.Session != "" {
			s += " (" + n.Session + ")"
		}
		if n.Conversation != "" {
			s += say(" to %s", conversationIn(language, n.Conversation))
		}
		return s
	case n.Kind == KindDelivery && n.Name == routerName:
		return say("handled by the router")
	case n.Kind == KindDelivery:
		return say("handled by %s", n.Name)
	case n.Kind == KindTurn:
		return say("turn %s of %s", n.ID, n.Name)
	case n.Kind == KindModel && len(n.Calls) > 0:
		return say("model %s calls %s", n.Name, strings.Join(n.Calls, ", "))
	case n.Kind == KindTool && n.Source != "":
		return say("%s %s calls %s", n.ID, mark(n.Source), n.Name)
	case n.Kind == KindModel:
		return say("model") + " " + n.Name
	case n.Kind == KindTool:
		return say("tool") + " " + n.Name
	case n.Name == contract.EntryNote:
		return say("note")
	case n.Name == contract.EntryContext:
		return say("context")
	case n.Name == contract.EntrySummary:
		return say("summary")
	}
	return n.Name
}

// conversationIn returns the address of a conversation, or who gets what names none.
func conversationIn(language, conversation string) string {
	if conversation == defaultRecipient {
		return words.Say(language, "the default recipient")
	}
	return conversation
}

// input names the agent, the kind of the input and its sender.
func (n *Node) input(language string, mark func(string) string) string {
	say := func(text string, args ...any) string { return words.Say(language, text, args...) }
	agent := mark(strings.TrimPrefix(n.Name, contract.TopicAgentInput))
	on := ""
	if n.Thread != "" {
		on = say(" on %s", n.Thread)
	}
	switch n.Input {
	case contract.InputUser:
		return say("%s in %s", agent, n.Place)
	case contract.InputTask:
		what, _, _ := strings.Cut(n.Place, " of ")
		switch kind, name, _ := strings.Cut(what, " "); {
		case kind == "task" && name != "":
			return say("task %s, done by %s", name, agent)
		case kind == "job" && name != "":
			return say("job %s, done by %s", name, agent)
		}
		return say("task of %s, done by %s", n.Sender, agent)
	case contract.InputMessage:
		return say("%s gets a message from %s%s", agent, n.Sender, on)
	case contract.InputResult:
		return say("%s gets the result of %s%s", agent, n.Sender, on)
	case contract.InputRecord:
		return say("%s gets a record%s in %s", agent, on, n.Place)
	case contract.InputNotice:
		return say("%s gets a notice from %s", agent, n.Sender)
	}
	return agent + ", " + n.Input + say(" of %s", n.Sender)
}

// Ended describes the outcome of a step in a language, like Title; mark gets its state, as it
// is stored and in that language.
func (n *Node) Ended(language string, mark func(state, shown string) string) string {
	var all []string
	if n.State != "" && (n.Kind != KindModel || n.State != "done") {
		all = append(all, mark(n.State, StateIn(language, n.State)))
	} else {
		all = append(all, "")
	}
	if n.ProviderID != "" {
		all = append(all, words.Say(language, "message")+" "+n.ProviderID)
	}
	if n.WaitMillis != nil && *n.WaitMillis >= 100 {
		all = append(all, words.Say(language, "waited %s", Duration(language, *n.WaitMillis)))
	}
	if n.Attempts > 0 {
		all = append(all, words.Count(language, "failed %d time", "failed %d times", n.Attempts, n.Attempts))
	}
	text := strings.Join(all, ", ")
	if all[0] != "" {
		text = ": " + text
	}
	if n.Reason != "" {
		text += " (" + words.Translate(language, n.Reason) + ")"
	}
	return text
}

// StateIn returns a state of a step, a delivery or a call in a language.
func StateIn(language, state string) string {
	switch state {
	case "pending":
		return words.Say(language, "pending")
	case "in flight":
		return words.Say(language, "in flight")
	case "dead":
		return words.Say(language, "dead")
	case "delivered":
		return words.Say(language, "delivered")
	case "open":
		return words.Say(language, "open")
	case "closed":
		return words.Say(language, "closed")
	}
	return words.Say(language, state)
}

// Duration formats milliseconds in a suitable unit, in a language.
func Duration(language string, ms float64) string {
	switch {
	case ms < 10:
		return words.Say(language, "%.1f ms", ms)
	case ms < 1000:
		return words.Say(language, "%.0f ms", ms)
	case ms < 60_000:
		return words.Say(language, "%.1f s", ms/1000)
	}
	whole := (time.Duration(ms) * time.Millisecond).Round(time.Second)
	if language == "" {
		return whole.String()
	}
	return words.Say(language, "%d min %d s", int(whole.Minutes()), int(whole.Seconds())%60)
}

// After returns when a step began, in milliseconds after the first one of its trace.
func (t *Trace) After(n *Node) float64 { return float64(n.At.Sub(t.At)) / float64(time.Millisecond) }

// Models returns the steps of models below a step, in the order in which they are shown.
func (n *Node) Models() (all []*Node) {
	if n.Kind == KindModel {
		all = append(all, n)
	}
	for _, c := range n.Children {
		all = append(all, c.Models()...)
	}
	return all
}
