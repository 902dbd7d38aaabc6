package offline

import (
	"testing"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

const kettles = `{"memories":[
	{"id":"m1k3t4","kind":"fact","text":"the kettle is in the kitchen","created":"2025-11-19T10:00:00+01:00"},
	{"id":"m2k3t4","kind":"open","text":"buy a new kettle","due":"2025-12-01","channel_id":"telegram_channel",
		"created":"2025-11-18T10:00:00+01:00","updated":"2025-11-20T10:00:00+01:00"},
	{"id":"m3k3t4","kind":"preference","text":"Чайник не трогать","created":"2025-11-01T10:00:00+01:00"}]}`

func TestMemory(t *testing.T) {
	t.Parallel()
	const lines = "- the kettle is in the kitchen (19 Nov 2025) [m1k3t4]\n" +
		"- buy a new kettle (to do, due 2025-12-01, telegram_channel, 20 Nov 2025) [m2k3t4]\n" +
		"- Чайник не трогать (preference, 1 Nov 2025) [m3k3t4]"
	for _, tt := range []struct {
		name, said string
		answers    map[string]string
		calls      []string
		answer     string
	}{
		{"remember", "remember that the kettle is in the kitchen",
			map[string]string{"remember": `{"status":"remembered","id":"m1k3t4",` +
				`"text":"the kettle is in the kitchen"}`},
			[]string{`remember {"text":"the kettle is in the kitchen"}`},
			"OK, I'll remember: the kettle is in the kitchen [m1k3t4]"},
		{"remember, Russian", "Запомни, что я предпочитаю Telegram",
			map[string]string{"remember": `{"status":"known","id":"m9","text":"я предпочитаю Telegram"}`},
			[]string{"list_channels {}",
				`remember {"channel_id":"telegram_channel","kind":"preference","text":"я предпочитаю Telegram"}`},
			"Я это уже помню: я предпочитаю Telegram [m9]"},
		{"remember for everyone", "Remember for everyone that the wifi password is on the fridge",
			map[string]string{"remember": `{"status":"remembered","id":"m2","text":"the wifi password is on the fridge"}`},
			[]string{`remember {"household":true,"text":"the wifi password is on the fridge"}`},
			"OK, I'll remember for everyone: the wifi password is on the fridge [m2]"},
		{"remember for all of us", "remember that we prefer oat milk for all of us",
			map[string]string{"remember": `{"status":"known","id":"m2","text":"we prefer oat milk"}`},
			[]string{`list_channels {}`, `remember {"household":true,"kind":"preference","text":"we prefer oat milk"}`},
			"I already know that: we prefer oat milk [m2]"},
		{"a cake for everyone", "remember that I baked a cake for everyone",
			map[string]string{"remember": `{"status":"remembered","id":"m2","text":"I baked a cake for everyone"}`},
			[]string{`remember {"text":"I baked a cake for everyone"}`},
			"OK, I'll remember: I baked a cake for everyone [m2]"},
		{"remember for everyone, Russian", "Запомни для всех, что мусор вывозят по средам",
			map[string]string{"remember": `{"status":"remembered","id":"m2","text":"мусор вывозят по средам"}`},
			[]string{`remember {"household":true,"text":"мусор вывозят по средам"}`},
			"Хорошо, запомню для всех: мусор вывозят по средам [m2]"},
		{"remember for all of us, Russian", "запомни, что ключ под ковриком, для всех нас",
			map[string]string{"remember": `{"status":"remembered","id":"m2","text":"ключ под ковриком"}`},
			[]string{`remember {"household":true,"text":"ключ под ковриком"}`},
			"Хорошо, запомню для всех: ключ под ковриком [m2]"},
		{"remember what is similar", "remember: the kettle is in the hall",
			map[string]string{"remember": `{"status":"updated","id":"m9","text":"the kettle is in the hall",` +
				`"similar":[{"id":"m1k3t4","kind":"fact","text":"the kettle is in the kitchen"}]}`},
			[]string{`remember {"text":"the kettle is in the hall"}`},
			"OK, I've updated that: the kettle is in the hall [m9]\nI also remember:\n- the kettle is in the kitchen " +
				"[m1k3t4]"},
		{"recall", "what do you know about the kettle?", map[string]string{"recall": kettles},
			[]string{`recall {"query":"the kettle"}`}, "Here's what I remember:\n" + lines},
		{"recall nothing", "что ты помнишь о слонах?", map[string]string{"recall": `{"memories":[]}`},
			[]string{`recall {"query":"слонах"}`}, "Не помню ничего о «слонах»."},
		{"list", "what do you remember?", map[string]string{"list_memories": kettles[:len(kettles)-1] + `,"more":7}`},
			[]string{`list_memories {}`}, "Here's what I remember:\n" + lines + "\nand 7 more"},
		{"list nothing", "покажи воспоминания", map[string]string{"list_memories": `{"memories":[]}`},
			[]string{`list_memories {}`}, "Я пока ничего не помню."},
		{"forget by id", "forget M1k3t4",
			map[string]string{"forget": `{"forgotten":[{"id":"m1k3t4","text":"the kettle is in the kitchen"}]}`},
			[]string{`forget {"ids":["m1k3t4"]}`}, "Forgotten: the kettle is in the kitchen [m1k3t4]"},
		{"forget by words", "forget the new kettle", map[string]string{"recall": kettles,
			"forget": `{"forgotten":[{"id":"m2k3t4"}]}`},
			[]string{`recall {"limit":50,"query":"the new kettle"}`, `forget {"ids":["m2k3t4"]}`},
			"Forgotten: [m2k3t4]"},
		{"forget by the whole text", "forget that the kettle is in the kitchen",
			map[string]string{"recall": kettles, "forget": `{"forgotten":[{"id":"m1k3t4","text":"t"}]}`},
			[]string{`recall {"limit":50,"query":"the kettle is in the kitchen"}`, `forget {"ids":["m1k3t4"]}`},
			"Forgotten: t [m1k3t4]"},
		{"forget which", "forget about the kettle", map[string]string{"recall": kettles},
			[]string{`recall {"limit":50,"query":"the kettle"}`},
			"Which one? Say its number.\n1. the kettle is in the kitchen (19 Nov 2025) [m1k3t4]\n" +
				"2. buy a new kettle (to do, due 2025-12-01, telegram_channel, 20 Nov 2025) [m2k3t4]"},
		{"forget what is not there", "забудь о слонах", map[string]string{"recall": kettles},
			[]string{`recall {"limit":50,"query":"слонах"}`}, "Не помню ничего о «слонах»."},
		{"forget everything", "forget everything", nil, nil,
			"In a chat I can only forget one thing at a time. To erase everything, run `switchboard memory forget " +
				"--all`."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := newLoop(t)
			h.answers = tt.answers
			if got := h.say(tt.said); got != tt.answer {
				t.Errorf("answer\n got %s\nwant %s", got, tt.answer)
			}
			h.wantCalls(tt.calls...)
		})
	}
}

func TestMemoryThatRefuses(t *testing.T) {
	t.Parallel()
	for said, tool := range map[string]string{
		"remember that I like tea": "remember", "what do you know about tea": "recall",
		"what do you remember": "list_memories", "forget m4k2q7": "forget", "forget tea": "recall",
	} {
		h := newLoop(t)
		h.failing[tool] = "the manifest lacks it"
		if got := h.say(said); got != "That didn't work: the manifest lacks it" {
			t.Errorf("%q: %s", said, got)
		}
	}
	h := newLoop(t)
	h.without = "memory__remember"
	if got := h.say("remember that I like tea"); got != "I can't do that here, because I'm not allowed to use the "+
		"tool remember." {
		t.Error(got)
	}
}

// A preferred channel decides where a reminder without a channel goes.
func TestPreferredChannel(t *testing.T) {
	t.Parallel()
	const context = "[context from memory/relevant]\n~~~\nPreferences:\n" +
		"- Speak (channel nowhere; briefly) to me (1 Mar 2026) [m1]\n" +
		"- I prefer (my) Telegram (channel telegram_channel; told by Anna; 1 Mar 2026) [m2]\n" +
		"- Not here (channel pigeon; 1 Feb 2026) [m3]\n\n" +
		"Remembered:\n- A bird (channel pigeon; 1 Mar 2026) [m4]\n~~~"
	for said, want := range map[string]string{
		"in 5 minutes remind me to leave": `schedule_once {"channel_id":"telegram_channel","delay_seconds":300,` +
			`"message":"leave"}`,
		"in 5 minutes remind me here to leave": `schedule_once {"delay_seconds":300,"message":"leave"}`,
		"in 5 minutes remind me in carrier pigeon to leave": `schedule_once {"channel_id":"pigeon",` +
			`"delay_seconds":300,"message":"leave"}`,
	} {
		h := newLoop(t)
		h.messages = append(h.messages, &extensionv1.Message{Role: "user", Content: said},
			&extensionv1.Message{Role: "user", Content: context})
		for said := h.ask(); len(said.GetCalls()) > 0; said = h.ask() {
			h.messages = append(h.messages, said)
			for _, c := range said.GetCalls() {
				h.messages = append(h.messages, &extensionv1.Message{Role: "tool", CallId: c.GetCallId(),
					Content: h.run(c)})
			}
		}
		if last := h.calls[len(h.calls)-1]; last != want {
			t.Errorf("%s: got %s", said, last)
		}
	}
	h := newLoop(t)
	h.messages = append(h.messages, &extensionv1.Message{Role: "user", Content: "hello"},
		&extensionv1.Message{Role: "user", Content: context},
		&extensionv1.Message{Role: "assistant", Content: "Hello!"})
	h.say("in 5 minutes remind me to leave")
	h.wantCalls(`schedule_once {"delay_seconds":300,"message":"leave"}`) // that was another turn's
}
