package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// A /stop ends everything of the conversation and says what that was, wherever the kernel
// is killed meanwhile: nothing of it is answered later.
func TestStopEndsEverythingOfTheConversation(t *testing.T) {
	t.Parallel()
	for _, crash := range []string{"", "before 1", "after 1", "after 2", "after 3"} {
		t.Run("crash "+crash, func(t *testing.T) {
			t.Parallel()
			stopsWithCrash(t, crash)
		})
	}
}

func stopsWithCrash(t *testing.T, crash string) {
	w := newWorld(t, withTelegram(), withModel)
	gate := make(chan struct{})
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		if !strings.Contains(r.Messages[len(r.Messages)-1].Content.Text, "slowly") {
			return openaitest.Say("Here I am.")
		}
		a := openaitest.Say("That took a while.")
		a.Gate = gate
		return a
	})
	if crash != "" {
		w.env["SWITCHBOARD_CRASH"], w.env["SWITCHBOARD_CRASH_FROM"] = crash, contract.TopicStopped
	}
	w.start()
	w.telegramReady()
	for i, command := range []string{"/push name=first dig slowly", "/push name=second dig slowly", "/run 1"} {
		w.telegram.Say(anna, command)
		w.told(anna, i+1)
	}
	w.telegram.Say(anna, "think slowly")
	w.eventually("a turn and a task", func() bool { return w.model.Total() == 2 })
	w.telegram.Say(anna, "and about the cat, slowly")
	w.read(w.telegram.Say(anna, "and about the dog, slowly"))
	w.telegram.Say(anna, "/stop")
	if crash != "" {
		<-w.kernel.ended
		delete(w.env, "SWITCHBOARD_CRASH")
		w.start()
		w.telegramReady()
	}
	texts := func() []string { return w.texts(anna)[3:] }
	w.eventually("both answers", func() bool {
		all := strings.Join(texts(), "\n")
		return strings.Contains(all, "Stopped.") && strings.Contains(all, "Cancelled")
	})
	w.settled()
	asked := w.model.Total()
	close(gate)
	answers := texts()
	for _, want := range []string{"Stopped.", "Cancelled 2 tasks: first, second."} {
		var said []string
		for _, text := range answers {
			if strings.Contains(text, want) && !strings.HasPrefix(text, contract.RepeatMark) {
				said = append(said, text)
			}
		}
		if len(said) != 1 {
			t.Errorf("%s is said %d times: %q", want, len(said), answers)
		}
	}
	if crash != "before 1" { // otherwise all may be one turn, which has begun again
		contains(t, "the answer", strings.Join(answers, "\n"),
			"Stopped. Dropped 2 messages that waited: “and about the cat, slowly”, “and about the dog, slowly”.")
	}
	if tasks := w.must("tasks", "list"); strings.Contains(tasks, "running") || strings.Contains(tasks, "queued") {
		t.Errorf("tasks: %s", tasks)
	}

	before := len(w.texts(anna))
	w.telegram.Say(anna, "/stop")
	contains(t, "the answer", w.told(anna, before+1).Text, "Nothing is running here.")
	w.telegram.Say(anna, "hello?")
	contains(t, "the answer", w.told(anna, before+2).Text, "Here I am.")
	w.settled()
	if n := w.model.Total(); n != asked+1 {
		t.Errorf("the model was asked %d times after the stop", n-asked)
	}
	last := transcript(w.model.Requests()[w.model.Total()-1])
	contains(t, "the request", last, "about the dog", "These tasks were cancelled: first, second.")
	if crash != "before 1" {
		contains(t, "the request", last, "dropped and not answered")
	}
	if all := strings.Join(w.texts(anna), "\n"); strings.Contains(all, "took a while") {
		t.Errorf("what was stopped is answered: %s", all)
	}
	if dead := w.dead(); len(dead) > 0 {
		t.Errorf("dead letters: %q", slices.Sorted(slices.Values(dead)))
	}
}
