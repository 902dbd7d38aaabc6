package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// office is agents that do on a link what the message says that they are given:
//
//	<pick W>    conclude with the word W
//	<early W>   ask community to pick W, and conclude at once
//	<thank>     answer everything, forever
//	<sleep>     say nothing
//	<fail>      the model fails
//	<hold W>    say W as soon as the test lets go
//
// The chief gives its agents the lines "agent: message" of what it is told.
type office struct {
	*world
	mu    sync.Mutex
	holds map[string]chan struct{}
	ids   map[string]string // of exchanges, by what was said on them
}

var ordered = regexp.MustCompile(`<(\w+)(?: (\w+))?>`)

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{world: newWorld(t, withTelegram(), withModel), holds: map[string]chan struct{}{},
		ids: map[string]string{}}
	o.config(fmt.Sprintf(`agents: {default: chief}
channels: {telegram_channel: {allow_from: ["%d", "%d"]}}
links:
  - {from: chief, to: lead, max_messages: 4}
  - {from: lead, to: community}
  - {from: chief, to: poet, mode: task}
  - {from: chief, to: sleeper, idle: 1s}
  - {from: talker, to: chief, max_messages: 1000}
`, anna, boris))
	agents := map[string]func(openaitest.Request) openaitest.Answer{"You are the chief.": o.chief}
	for _, id := range []string{"chief", "lead", "community", "poet", "sleeper", "talker"} {
		o.dropIn(id, "", fmt.Sprintf(linkedAgent, id)+"  uses_tools: [core/list_channels]\n")
		if id != "chief" {
			agents["You are the "+id+"."] = o.worker
		}
	}
	o.model.Handle(by(agents))
	o.start()
	for _, id := range []string{"links", "chief", "lead", "community", "poet", "sleeper", "talker"} {
		o.state(o.control(), id, "active")
	}
	return o
}

func (o *office) chief(r openaitest.Request) openaitest.Answer {
	last := heard(r)
	switch {
	case len(allResults(r)) > 0 && strings.HasPrefix(last, "channels?"):
		return openaitest.Say("CHANNELS " + allResults(r)[0])
	case len(allResults(r)) > 0:
		return openaitest.Say("I have asked.")
	case strings.HasPrefix(last, "channels?"):
		return openaitest.CallTool("list_channels", map[string]string{})
	case strings.HasPrefix(last, "[result from "):
		return openaitest.Say("RESULT " + last)
	case strings.HasPrefix(last, "[message from "):
		return openaitest.Say("No, I thank you! <thank>")
	}
	var a openaitest.Answer
	for line := range strings.Lines(last) {
		if target, message, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			a.Calls = append(a.Calls, openaitest.NewCall("links__send_agent_message",
				map[string]string{"target": target, "message": message}))
		}
	}
	return a
}

func (o *office) worker(r openaitest.Request) openaitest.Answer {
	last, results := heard(r), allResults(r)
	if strings.HasPrefix(last, "[result from ") {
		return openaitest.Say("Thanks for that.")
	}
	found := ordered.FindAllStringSubmatch(last, -1)
	if len(found) == 0 {
		return openaitest.Fail(400, "nothing is ordered: "+last)
	}
	word := found[0][2]
	conclude := func(summary string) openaitest.Answer {
		return openaitest.CallTool("links__conclude_link", map[string]string{"summary": summary})
	}
	switch found[0][1] {
	case "pick":
		if len(results) > 0 {
			return openaitest.Say("You are welcome to " + word + ".")
		}
		return conclude("The word is " + word + "!")
	case "early":
		switch len(results) {
		case 0:
			return openaitest.CallTool("links__send_agent_message",
				map[string]string{"target": "community", "message": "<hold " + word + ">"})
		case 1:
			return conclude("I have asked community.")
		}
		return openaitest.Say("NO_REPLY")
	case "thank":
		return openaitest.Say("No, thank you! <thank>")
	case "sleep":
		return openaitest.Say("NO_REPLY")
	case "hold":
		if len(results) > 0 {
			return openaitest.Say("NO_REPLY")
		}
		<-o.hold(word)
		if strings.HasPrefix(last, "[message from lead]") {
			return conclude("The word is " + word + "!")
		}
		return openaitest.Say("It is " + word + ".")
	}
	return openaitest.Fail(400, "no")
}

func (o *office) hold(word string) chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.holds[word] == nil {
		o.holds[word] = make(chan struct{})
		o.t.Cleanup(sync.OnceFunc(func() { o.letGo(word) }))
	}
	return o.holds[word]
}

func (o *office) letGo(word string) {
	held := o.hold(word)
	select {
	case <-held:
	default:
		close(held)
	}
}

// portal is a new conversation with the chief, who has been asked.
func (o *office) portal(orders ...string) *person {
	o.t.Helper()
	p := o.attach(wire.Frame{New: true})
	p.say(strings.Join(orders, "\n"))
	p.hearsLike("I have asked.")
	return p
}

// results are those that a conversation was told.
func results(texts []string) (found []string) {
	for _, text := range texts {
		if strings.Contains(text, "RESULT") {
			found = append(found, text)
		}
	}
	return found
}

// errand waits for the exchange on which something is said, and returns it.
func (o *office) errand(words string) (found listedExchange) {
	o.t.Helper()
	o.eventually("an exchange about "+words, func() bool {
		for _, x := range list[struct{ Exchanges []listedExchange }](o.world, "links", "list", "--all").Exchanges {
			if id := o.ids[words]; id == x.ID || id == "" && strings.Contains(o.must("links", "show", x.ID), words) {
				o.ids[words], found = x.ID, x
				return true
			}
		}
		return false
	})
	return found
}

// sides are what the histories of both sides of a link show, in the sessions of the
// exchange that had its last turn or record most lately.
func (o *office) sides(a, b string) (shown []string) {
	o.t.Helper()
	return []string{o.must("sessions", "show", o.side(a, b)), o.must("sessions", "show", o.side(b, a))}
}

// side is the session of a's side towards b that was active most lately. Each
// conversation has its own.
func (o *office) side(a, b string) string {
	o.t.Helper()
	var newest *adminv1.Session
	for _, s := range list[[]*adminv1.Session](o.world, "sessions", "list") {
		if strings.HasPrefix(s.Key+":", "link:"+a+":"+b+":") && (newest == nil || s.ActiveAtUs > newest.ActiveAtUs) {
			newest = s
		}
	}
	if newest == nil {
		o.t.Fatalf("%s has no side towards %s", a, b)
	}
	return newest.Id
}

// onlyOne checks that a conversation was told one result, with the words.
func onlyOne(t *testing.T, p *person, words ...string) {
	t.Helper()
	p.hearsLike("RESULT")
	if got := results(p.texts()); len(got) != 1 {
		t.Errorf("the conversation was told %q", got)
	}
	contains(t, "the result", strings.Join(p.texts(), "\n"), words...)
}

func TestLinks(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	run := func(name string, test func(t *testing.T)) {
		t.Run(name, func(t *testing.T) {
			test(t)
			o.settled()
		})
	}

	run("links are no channels", func(t *testing.T) {
		p := o.attach(wire.Frame{New: true})
		p.say("channels?")
		listed := p.hearsLike("CHANNELS")
		contains(t, "list_channels", listed, "telegram_channel")
		for what, text := range map[string]string{"list_channels": listed,
			"channels list": o.must("channels", "list", "--json")} {
			if strings.Contains(text, "link") {
				t.Errorf("%s names links: %s", what, text)
			}
		}
	})

	run("two delegations from one portal to two agents", func(t *testing.T) {
		p := o.portal("lead: <pick apple>", "poet: <hold pear>")
		p.hearsLike("apple!")
		o.letGo("pear")
		p.hearsLike("It is pear.")
		got := results(p.texts())
		if len(got) != 2 || !strings.Contains(got[0], "[result from lead]") ||
			!strings.Contains(got[1], "[result from poet]") {
			t.Errorf("the conversation was told %q", got)
		}
	})

	run("two delegations from two portals to one agent", func(t *testing.T) {
		o.telegram.Say(anna, "lead: <hold plum>")
		o.told(anna, 1)
		o.telegram.Say(boris, "lead: <pick fig>")
		o.told(boris, 1)
		if x, y := o.errand("<hold plum>"), o.errand("<pick fig>"); x.ID == y.ID || x.Over {
			t.Errorf("one waits for the other: %+v, %+v", x, y)
		}
		o.letGo("plum") // is answered by the chief, until its messages are used up
		contains(t, "what Anna reads", o.told(anna, 2).Text, "began with lead", "messages are used up")
		contains(t, "what Boris reads", o.told(boris, 2).Text, "The word is fig!")
		o.settled()
		for chat, foreign := range map[int64]string{anna: "fig", boris: "plum"} {
			if texts := strings.Join(o.texts(chat), "\n"); strings.Contains(texts, foreign) ||
				strings.Count(texts, "RESULT") != 1 {
				t.Errorf("%d reads %q", chat, texts)
			}
		}
	})

	run("an intermediary that concludes early does not lose the result", func(t *testing.T) {
		p := o.portal("lead: <early grape>")
		p.hearsLike("I have asked community.")
		o.letGo("grape")
		p.hearsLike("The word is grape!")
		o.settled()
		if got := results(p.texts()); len(got) != 2 {
			t.Errorf("the conversation was told %q", got)
		}
		// Both sides of both links show all of it.
		for i, shown := range o.sides("chief", "lead") {
			contains(t, fmt.Sprint("side ", i), shown, "<early grape>", "I have asked community.", "is over: concluded by lead")
		}
		for i, shown := range o.sides("lead", "community") {
			contains(t, fmt.Sprint("side ", i), shown, "<hold grape>", "The word is grape!", "is over: concluded by community")
		}
	})

	run("agents that thank each other end at their cap", func(t *testing.T) {
		p := o.portal("lead: <thank> thrice")
		onlyOne(t, p, "its 4 messages are used up")
		if x := o.errand("<thank> thrice"); x.Outcome != "capped" || x.Messages != 4 {
			t.Errorf("it ended as %+v", x)
		}
		for i, shown := range o.sides("chief", "lead") {
			contains(t, fmt.Sprint("side ", i), shown, "<thank> thrice", "No, thank you!", "No, I thank you!",
				"messages are used up")
		}
	})

	run("a model that never concludes ends idle", func(t *testing.T) {
		p := o.portal("sleeper: <sleep> well")
		onlyOne(t, p, "no message arrived for too long")
		if x := o.errand("<sleep> well"); x.Outcome != "idle" {
			t.Errorf("it ended as %+v", x)
		}
	})

	run("a peer that fails ends it", func(t *testing.T) {
		p := o.portal("lead: <fail> now")
		onlyOne(t, p, "lead failed (error)")
		if x := o.errand("<fail> now"); x.Outcome != "error" {
			t.Errorf("it ended as %+v", x)
		}
	})

	run("what is said too late is not delivered, and both sides read that", func(t *testing.T) {
		p := o.portal("lead: <hold kiwi>")
		p.say("lead: one\nlead: two\nlead: three\nlead: four")
		onlyOne(t, p, "messages are used up", "four")
		o.letGo("kiwi")
		o.settled()
		shown := o.sides("chief", "lead")
		contains(t, "the side of the chief", shown[0], "Too late", "It is kiwi.")
		contains(t, "the side of the lead", shown[1], "your last text was not delivered", "was not answered", "one", "two",
			"three")
		if got := results(p.texts()); len(got) != 1 {
			t.Errorf("the conversation was told %q", got)
		}
	})

	run("in mode task the final text is the result", func(t *testing.T) {
		o.letGo("rose")
		p := o.portal("poet: <hold rose>")
		onlyOne(t, p, "It is rose.", "concluded by poet")
	})

	run("a side that is deleted ends what was open on it", func(t *testing.T) {
		p := o.portal("lead: <hold lime>")
		o.errand("<hold lime>")
		o.must("sessions", "delete", o.side("lead", "chief"), "--yes")
		onlyOne(t, p, "The session of lead was deleted")
		if x := o.errand("<hold lime>"); x.Outcome != "unavailable" {
			t.Errorf("it ended as %+v", x)
		}
		o.letGo("lime")
		onlyOne(t, o.portal("lead: <pick lime>"), "The word is lime!")
	})

	run("a conversation that is deleted holds nothing up", func(t *testing.T) {
		p := o.portal("lead: <hold nut>")
		var side string
		for _, s := range list[[]*adminv1.Session](o.world, "sessions", "list", "--agent", "chief") {
			if strings.Contains(o.must("sessions", "show", s.Id), "lead: <hold nut>") {
				side = s.Id
			}
		}
		o.must("sessions", "delete", side, "--yes")
		o.letGo("nut")
		o.eventually("its end", func() bool { return o.errand("<hold nut>").Over })
		if x := o.errand("<hold nut>"); x.Outcome != "unavailable" || len(results(p.texts())) != 0 {
			t.Errorf("it ended as %+v, and was told: %q", x, p.texts())
		}
	})

	if dead := o.dead(); len(dead) != 0 {
		t.Errorf("dead letters: %q", dead)
	}

	run("the turns that follow from one event end an exchange", func(t *testing.T) {
		o.telegram.Say(anna, "talker: <thank> for ever")
		o.eventually("its end", func() bool { return o.errand("<thank> for ever").Over })
		x := o.errand("<thank> for ever")
		o.settled()
		if x.Outcome != "capped" || x.Messages < 150 || x.Messages > 200 {
			t.Errorf("it ended as %+v", x)
		}
		const saying = `SELECT count(*) FROM event WHERE topic LIKE 'channel.send.%' AND instr(CAST(payload AS TEXT), 'I stopped here') > 0`
		if n := o.query(saying); n[0] != "1" {
			t.Errorf("the owner was told %s times", n[0])
		}
		if told := o.query(`SELECT json_extract(CAST(payload AS TEXT), '$.kind') FROM event WHERE dedupe = ?`,
			"links:"+x.ID+"/end"); !slices.Equal(told, []string{"record"}) {
			t.Errorf("who began it was told %q", told)
		}
	})
}
