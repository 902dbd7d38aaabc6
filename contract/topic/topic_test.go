package topic_test

import (
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/topic"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		pattern, topic string
		want           bool
	}{
		{"reminder.due", "reminder.due", true},
		{"reminder.due", "reminder.due.late", false},
		{"reminder.due", "reminder.duel", false},
		{"reminder.*", "reminder.due", true},
		{"reminder.*", "reminder.due.late", true},
		{"reminder.*", "reminder", false},
		{"reminder.*", "reminders.due", false},
		{"reminder.d*", "reminder.due", false},
		{"reminder.*.late", "reminder.due.late", false},
		{"agent.input.*", "agent.input.echo", true},
		{"agent.input.*", "agent.output", false},
		{"*", "reminder.due", true},
		{"*", "user.message", false},
		{"*", "system.made_up", false},
		{"*", "reminder", false},
		{"", "", false},
		{"reminder.*", "reminder.", false},
		{"reminder.*", "reminder.Due", false},
		{"reminder.*", "reminder.*", false},
	} {
		if got := topic.Match(tc.pattern, tc.topic); got != tc.want {
			t.Errorf("Match(%q, %q) = %v, want %v", tc.pattern, tc.topic, got, tc.want)
		}
	}
}

func TestValid(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		s              string
		topic, pattern bool
	}{
		{"user.message", true, true},
		{"a.b", true, true},
		{"a.1", true, true},
		{"a.b_c.d2", true, true},
		{"a", false, false},
		{"", false, false},
		{"*", false, true},
		{"a.*", false, true},
		{"*.a", false, false},
		{"a.*.b", false, false},
		{".*", false, false},
		{"a..b", false, false},
		{".a.b", false, false},
		{"a.b.", false, false},
		{"1a.b", false, false},
		{"_a.b", false, false},
		{"A.b", false, false},
		{"a.b c", false, false},
		{"a.é", false, false},
		{"a." + strings.Repeat("b", topic.MaxLength-2), true, true},
		{"a." + strings.Repeat("b", topic.MaxLength-1), false, false},
	} {
		if got := topic.ValidTopic(tc.s); got != tc.topic {
			t.Errorf("ValidTopic(%q) = %v, want %v", tc.s, got, tc.topic)
		}
		if got := topic.ValidPattern(tc.s); got != tc.pattern {
			t.Errorf("ValidPattern(%q) = %v, want %v", tc.s, got, tc.pattern)
		}
	}
}

// The contract's list and this one must stay the same.
func TestKernelTopics(t *testing.T) {
	t.Parallel()
	topics := []string{
		contract.TopicUserMessage, contract.TopicAgentInput + "x", contract.TopicAgentOutput,
		contract.TopicChannelSend + "x", contract.TopicCommand + "x", contract.TopicUserNotify, contract.TopicUserAsk,
		contract.TopicAgentTask, contract.TopicAgentBackground, contract.TopicDeliveryDead,
		contract.TopicExtension + "x", contract.TopicSchedulesDeclared, contract.TopicSessionIdle + "x",
		contract.TopicModelUsage, contract.TopicPersonRevoked, contract.TopicPersonChanged,
		contract.TopicStopped, contract.TopicToolCall + "x", contract.TopicToolResult + "x",
	}
	if got := len(topic.KernelPatterns()); got != len(topics) {
		t.Errorf("%d kernel patterns, the contract has %d topics", got, len(topics))
	}
	for _, s := range topics {
		if !topic.Kernel(s) {
			t.Errorf("Kernel(%q) = false", s)
		}
		if !topic.Reserved(topic.Owner(s)) {
			t.Errorf("the owner of %q is not reserved", s)
		}
	}
	for _, s := range []string{"reminder.due", "users.message", "system.other", "agent.input", "command"} {
		if topic.Kernel(s) {
			t.Errorf("Kernel(%q) = true", s)
		}
	}
	for _, s := range []string{"", "use", "users", "user.message", "scheduler"} {
		if topic.Reserved(s) {
			t.Errorf("Reserved(%q) = true", s)
		}
	}
}

func TestOverlap(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"a.b", "a.b", true},
		{"a.b", "a.c", false},
		{"a.*", "a.b.c", true},
		{"a.*", "a.b.*", true},
		{"a.*", "ab.*", false},
		{"*", "a.b", true},
		{"*", "a.*", true},
		{"*", "*", true},
		{"*", "user.message", false},
		{"*", "bad", false},
	} {
		if topic.Overlap(tc.a, tc.b) != tc.want || topic.Overlap(tc.b, tc.a) != tc.want {
			t.Errorf("Overlap(%q, %q) is not %v both ways", tc.a, tc.b, tc.want)
		}
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("reminder.*", "reminder.due", "a.*")
	f.Add("*", "user.message", "user.*")
	f.Add("a.*", "a.", "")
	f.Fuzz(func(t *testing.T, p, s, q string) {
		if topic.ValidTopic(s) {
			if !topic.ValidPattern(s) || !topic.Match(s, s) {
				t.Fatalf("topic %q is not a pattern that matches itself", s)
			}
			if !topic.Match(topic.Owner(s)+".*", s) {
				t.Fatalf("%q is not matched by its owner's wildcard", s)
			}
			if topic.Match("*", s) == topic.Reserved(topic.Owner(s)) {
				t.Fatalf("* and the reserved topics are not complements at %q", s)
			}
		}
		if topic.Match(p, s) && (!topic.ValidPattern(p) || !topic.ValidTopic(s)) {
			t.Fatalf("Match(%q, %q) holds for something invalid", p, s)
		}
		if topic.Match(p, s) && topic.Match(q, s) && !topic.Overlap(p, q) {
			t.Fatalf("%q and %q both match %q and do not overlap", p, q, s)
		}
		if topic.Overlap(p, q) != topic.Overlap(q, p) {
			t.Fatalf("Overlap(%q, %q) is not symmetric", p, q)
		}
	})
}

func TestKernelOnly(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		"user.message": "", "agent.output": "", "agent.input.chief": "agent.input.*", "tool.call.x": "tool.call.*",
		"tool.*": "tool.call.*", "system.*": "system.delivery.dead", "system.user.*": "", "jotter.done": "", "*": "",
		"model.usage": "model.usage", "session.idle.x": "session.idle.*",
	} {
		if got := topic.KernelOnly(pattern); got != want {
			t.Errorf("KernelOnly(%q) = %q, want %q", pattern, got, want)
		}
	}
}

func TestCovers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		granted, pattern string
		want             bool
	}{
		{"a.b", "a.b", true}, {"a.*", "a.b", true}, {"a.*", "a.b.*", true}, {"a.b.*", "a.*", false}, {"*", "a.*", true},
		{"*", "agent.*", false}, {"a.*", "*", false}, {"a.b", "a.c", false}, {"*", "*", true}, {"a.*", "ab.c", false},
	} {
		if got := topic.Covers(tc.granted, tc.pattern); got != tc.want {
			t.Errorf("Covers(%q, %q) = %t, want %t", tc.granted, tc.pattern, got, tc.want)
		}
	}
}
