package heartbeat

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// reports returns the result of the tool.
func (p *played) reports() (r struct {
	Runs, Escalations int64
	Problem           string
	Every             string
	Recent            []struct {
		Key, Reason string
		At          time.Time
	}
},
) {
	p.t.Helper()
	result, err := p.h.tools()[0].Call(p.t.Context(), sdk.ToolCall{})
	if err != nil || result.IsError || len(result.Effects) > 0 {
		p.t.Fatalf("%+v, %v", result, err)
	}
	if err := json.Unmarshal([]byte(result.Content), &r); err != nil {
		p.t.Fatal(err)
	}
	return r
}

func TestFiguresNameTheirEvents(t *testing.T) {
	t.Parallel()
	p := play(t, config{Every: "1d12h"})
	if r := p.reports(); r.Runs != 0 || r.Every != "1d12h" || r.Recent == nil || len(r.Recent) != 0 {
		t.Errorf("before the first look: %+v", r)
	}
	p.open(kettle)
	p.says = escalates("the kettle")
	effects := p.handles(p.event())
	p.commits(effects)
	p.beats()
	r := p.reports()
	if r.Runs != 2 || r.Escalations != 1 || len(r.Recent) != 1 {
		t.Fatalf("after an escalation: %+v", r)
	}
	published := effects[len(effects)-1].GetPublish().GetDedupeKey()
	if e := r.Recent[0]; published == "" || e.Key != published || e.Reason != "the kettle" || !e.At.Equal(noon) {
		t.Errorf("the escalation is %+v, published under %q", e, published)
	}
}

func TestDamagedFiguresReportTheProblem(t *testing.T) {
	t.Parallel()
	p := play(t, config{})
	p.kv = sdk.Value{Key: stateKey, Value: []byte("not json"), Version: 7}
	if r := p.reports(); !strings.Contains(r.Problem, "was damaged") {
		t.Errorf("%+v", r)
	}
}

// The figures are for a person at the command line, not for agents.
func TestFiguresArePrivate(t *testing.T) {
	t.Parallel()
	tools := New().Tools
	if len(tools) != 2 || tools[0].Name != "figures" || !tools[0].Private || !tools[0].ReadOnly || !tools[1].Private {
		t.Errorf("%+v", tools)
	}
}

// The newest escalations are about the owner's items.
func TestFiguresOfOthersNameNoItems(t *testing.T) {
	t.Parallel()
	p := play(t, config{})
	p.open(kettle)
	p.says = escalates("the kettle")
	p.commits(p.handles(p.event()))
	for name, tt := range map[string]struct {
		principal contract.Principal
		told      bool
	}{
		"the owner":           {contract.Principal{Person: "o1", Accounts: []string{"o1", contract.Owner}, Own: true}, true},
		"a member":            {contract.Principal{Person: "boris", Accounts: []string{"boris"}, Own: true}, false},
		"the household group": {contract.Principal{Person: "o1", Group: "home"}, false},
		"another group":       {contract.Principal{Person: "o1", Group: "club", Confined: true, Own: true}, false},
	} {
		result, err := p.h.tools()[0].Call(p.t.Context(), sdk.ToolCall{Principal: tt.principal})
		if err != nil || strings.Contains(result.Content, "the kettle") != tt.told {
			t.Errorf("%s is told %s, %v", name, result.Content, err)
		}
	}
}
