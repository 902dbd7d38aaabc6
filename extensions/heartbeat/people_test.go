package heartbeat

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

var (
	borisOnTelegram = contract.Principal{Person: "boris", Own: true, Accounts: []string{"boris", "boris2"}}
	borisOnSlack    = contract.Principal{Person: "boris2", Own: true, Accounts: []string{"boris", "boris2"}}
	annaTheOwner    = contract.Principal{Person: "anna", Own: true, Accounts: []string{"anna", contract.Owner}}
)

// household is a world with an owner, and with Boris in another time zone.
func household(t *testing.T) *played {
	t.Helper()
	p := play(t, config{})
	p.people = map[string]contract.Recipient{
		contract.Owner: {Name: "Anna", ChannelID: "telegram_channel", Accounts: []string{"anna", contract.Owner}},
	}
	for _, account := range borisOnTelegram.Accounts {
		p.people[account] = contract.Recipient{
			Name: "Boris", ChannelID: "slack_channel", Accounts: borisOnTelegram.Accounts, Timezone: "Asia/Tokyo",
		}
	}
	p.theirs = map[string]string{"boris": `{"memories":[{"id":"m7","text":"his visa","due":"2026-11-20"}]}`}
	return p
}

// writes has a person write /heartbeat.
func (p *played) writes(of contract.Principal, state string) string {
	p.t.Helper()
	raw, _ := json.Marshal(map[string]string{"state": state})
	if state == "" {
		raw = []byte("{}")
	}
	r, err := p.h.choose(p.t.Context(), sdk.ToolCall{Arguments: raw, Principal: of, Command: "heartbeat"})
	if err != nil {
		return err.Error()
	}
	p.t.Helper()
	effects := p.protos(r.Effects)
	p.commits(effects)
	return r.Content
}

// runsChecks handles the events of checks that were published.
func (p *played) runsChecks() {
	p.t.Helper()
	for len(p.checks) > 0 {
		c := p.checks[0]
		p.checks = p.checks[1:]
		p.commits(p.handles(c))
	}
}

func TestOthersGetAHeartbeatIfTheyWantIt(t *testing.T) {
	t.Parallel()
	p := household(t)
	p.now = time.Date(2026, 11, 20, 7, 30, 0, 0, time.UTC) // 8:30 in Berlin, 16:30 in Tokyo
	p.beats()
	if len(p.checks) != 0 || !strings.Contains(p.writes(borisOnTelegram, ""), "To have me do so") {
		t.Errorf("a heartbeat that nobody has turned on: %v", p.checks)
	}
	p.writes(borisOnSlack, "on")
	for _, of := range []contract.Principal{borisOnTelegram, borisOnSlack} {
		if got := p.writes(of, ""); !strings.Contains(got, "To stop that") {
			t.Errorf("after it was turned on, %s reads %s", of.Person, got)
		}
	}
	p.says = `{"action":"escalate","reason":"his visa","items":["m7"]}`
	p.beats()
	p.runsChecks()
	p.expect(1, 1)
	if asked := p.asked[0]; !strings.Contains(asked, "16:30 (Asia/Tokyo)") || !strings.Contains(asked, "his visa") ||
		!strings.Contains(asked, "The default channel is slack_channel") {
		t.Errorf("the scout was asked:\n%s", asked)
	}
	if got := p.tasks[0].Principal; got.Person != "boris2" || !got.Own || !p.tasks[0].Quiet {
		t.Errorf("the task is %+v", p.tasks[0])
	}
	for _, asked := range p.memory {
		if own := asked["own"].(bool); own != (asked["accounts"].([]string)[0] != "anna") {
			t.Errorf("memory was asked for %v", asked)
		}
	}
	// The owner reads that there was one, not of what.
	r := p.reports()
	if r.Escalations != 1 || len(r.Recent) != 1 || strings.Contains(r.Recent[0].Reason, "visa") {
		t.Errorf("the figures are %+v", r)
	}
	p.now = time.Date(2026, 11, 20, 14, 0, 0, 0, time.UTC) // 23:00 in Tokyo
	p.theirs["boris"] = `{"memories":[{"id":"m8","text":"his passport"}]}`
	p.beats()
	p.runsChecks()
	p.expect(1, 1)
	// In quiet hours no model is asked either.
	p.now = p.now.Add(12 * time.Hour) // 11:00 in Tokyo
	for account, to := range p.people {
		if to.Name == "Boris" {
			to.Quiet = "09:00-12:00"
			p.people[account] = to
		}
	}
	p.beats()
	p.runsChecks()
	p.expect(1, 1)
	p.writes(borisOnTelegram, "off")
	p.now = p.now.Add(4 * time.Hour)
	p.beats()
	p.runsChecks()
	p.expect(1, 1)
}

func TestTheHeartbeatOfAPersonEndsWithThem(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]sdk.Event{
		"revoked": {Topic: contract.TopicPersonRevoked, Payload: []byte(`{"person":"boris"}`)},
		"a guest": {Topic: contract.TopicPersonChanged, Payload: []byte(`{"account":"boris","change":"guest"}`)},
		"linked":  {Topic: contract.TopicPersonChanged, Payload: []byte(`{"account":"boris","change":"linked"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := household(t)
			p.writes(borisOnTelegram, "on")
			p.says = escalates("his visa")
			p.beats()
			late := p.checks
			p.runsChecks()
			p.expect(1, 1)
			p.commits(p.handles(e))
			p.checks = late // an event that was on its way
			p.runsChecks()
			p.beats()
			if p.expect(1, 1); len(p.rows) != 0 || len(p.checks) != 0 {
				t.Errorf("what is left: %v, %v", p.rows, p.checks)
			}
		})
	}
	p := household(t)
	p.writes(borisOnTelegram, "on")
	p.commits(p.handles(sdk.Event{
		Topic: contract.TopicPersonChanged, Payload: []byte(`{"account":"boris","change":"owner"}`),
	}))
	for account, to := range p.people {
		if to.Name == "Boris" { // his account is the owner's now
			to.Accounts = append(to.Accounts, contract.Owner)
			p.people[account] = to
		}
	}
	p.beats()
	p.runsChecks()
	p.expect(0, 0)
}

func TestTheOwnersHeartbeat(t *testing.T) {
	t.Parallel()
	p := household(t)
	p.open(kettle)
	p.says = escalates("the kettle")
	for _, of := range []contract.Principal{
		{Person: "boris", Group: "home"}, {Person: "boris", Group: "club", Confined: true, Own: true},
		{Person: "guest", Confined: true, Own: true}, {},
	} {
		if got := p.writes(of, "on"); got != "use /heartbeat in a private chat with me" {
			t.Errorf("%+v reads %s", of, got)
		}
	}
	if got := p.writes(annaTheOwner, "off"); !strings.Contains(got, "To have me do so") {
		t.Errorf("the owner reads %s", got)
	}
	p.beats()
	p.skipped(skipOff)
	p.writes(annaTheOwner, "on")
	p.beats()
	p.expect(1, 1)
	if got := p.tasks[0].Principal; got.Person != "" || got.Own {
		t.Errorf("the owner's task is for %+v", got)
	}
}
