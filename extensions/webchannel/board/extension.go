package board

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract/adminv1"
)

// extensionSheet is the page of one extension.
func (q *request) extensionSheet(x *adminv1.Extension) *sheet {
	s := &sheet{Title: orElse(q.translate(x.GetName()), x.GetId())}
	state := q.state(x.GetState())
	state.Sub = q.translate(x.GetDetail())
	about := block{Facts: []fact{
		{q.say("Id"), cell{Text: x.GetId(), Code: true}}, {q.say("State"), state},
		{q.say("Ready"), q.state(x.GetReadiness())},
		{q.say("Since"), q.at(x.GetSinceUs())}, {q.say("Restarts after failures"), text(fmt.Sprint(x.GetRestarts()))},
	}}
	if x.GetProblem() != "" {
		about.Problems = append(about.Problems, q.translate(x.GetProblem()))
	}
	if x.GetVersion() != "" {
		about.Facts = append(about.Facts, fact{q.say("Version"), text(x.GetVersion())})
	}
	if x.GetLastError() != "" {
		last := text(q.translate(x.GetLastError()))
		last.Sub = q.at(x.GetLastErrorAtUs()).Text
		about.Facts = append(about.Facts, fact{q.say("Last error"), last})
	}
	if x.GetState() != "disabled" && x.GetState() != "invalid" && x.GetState() != "not_allowed" {
		about.Forms = []form{{
			Action: extensionsPath + "/restart", Label: q.say("Restart"), Hidden: []hidden{{"id", x.GetId()}},
			Question: q.say("Restart %s? Unfinished deliveries are repeated; nothing is lost.", x.GetId()),
		}}
	}
	if x.GetState() == "disabled" {
		about.Forms = append(about.Forms, q.enableForm(x))
	}
	s.Blocks = append(s.Blocks, about)
	if x.GetConsent() != nil {
		s.Blocks = append(s.Blocks, q.consentBlocks(x)...)
	}
	if box := x.GetSandbox(); box != nil {
		b := block{Title: q.say("Sandbox"), Facts: []fact{
			{q.say("Level"), q.state(box.GetLevel())}, {q.say("Network"), text(dash(q.translate(box.GetNetwork())))},
			{q.say("Files"), text(dash(strings.Join(box.GetFiles(), ", ")))},
		}}
		if box.GetReason() != "" {
			b.Text = []string{q.translate(box.GetReason())}
		}
		s.Blocks = append(s.Blocks, b)
	}
	if x.GetCrash() != "" {
		b := block{Title: q.say("What it wrote before it died")}
		for l := range strings.Lines(x.GetCrash()) {
			b.Lines = append(b.Lines, line{Text: strings.TrimRight(l, "\n")})
		}
		s.Blocks = append(s.Blocks, b)
	}
	if change := q.changeForms(x); len(change) > 0 {
		s.Blocks = append(s.Blocks, block{Title: q.say("Change"), Forms: change})
	}
	s.Blocks = append(s.Blocks, q.logBlock(x.GetId()), block{Links: []link{
		{Text: q.say("All extensions"), Href: extensionsPath},
		{Text: q.say("Log of the kernel"), Href: extensionsPath + "/kernel"},
	}})
	return s
}

// consentBlocks shows what an extension asks for, and lets the owner decide.
func (q *request) consentBlocks(x *adminv1.Extension) (all []block) {
	c := x.GetConsent()
	id := hidden{"id", x.GetId()}
	b := block{Title: q.say("It asks for your permission to:"), List: q.translated(c.GetAsks())}
	if len(c.GetAsks()) == 0 {
		b.List, b.Text = nil, []string{q.say("It asks for no permission.")}
		b.Title = q.say("Permissions")
	} else {
		b.Facts = []fact{{q.say("Decision"), q.state(c.GetState())}}
		allow := form{
			Action: extensionsPath + "/allow", Label: q.say("Allow"), Open: true,
			Hidden: []hidden{id, {"code", c.GetCode()}},
		}
		if c.GetOffersTools() && !c.GetTools() {
			allow.Fields = []field{{Name: "tools", Label: q.say("The default agent may use its tools"), Type: "check"}}
		}
		refuse := form{
			Action: extensionsPath + "/refuse", Label: q.say("Refuse"), Danger: true,
			Hidden: []hidden{id, {"code", c.GetCode()}}, Question: q.say("Refuse it? %s is stopped.", x.GetId()),
		}
		if c.GetState() != "allowed" || len(c.GetMore()) > 0 || len(allow.Fields) > 0 {
			b.Forms = append(b.Forms, allow)
		}
		if c.GetState() != "refused" || c.GetOlder() {
			b.Forms = append(b.Forms, refuse)
		}
	}
	all = append(all, b)
	if more := c.GetMore(); len(more) > 0 && len(more) < len(c.GetAsks()) {
		all = append(all, block{Title: q.say("Of that, not allowed yet:"), List: q.translated(more)})
	}
	if c.GetOlder() {
		all = append(all, block{Text: []string{q.say("It runs with the permissions that it had until you decide.")}})
	}
	if c.GetTools() {
		all = append(all, block{Text: []string{q.say("The default agent may use its tools.")}})
	}
	if len(c.GetUses()) > 0 {
		all = append(all, block{Title: q.say("Without asking, it:"), List: q.translated(c.GetUses())})
	}
	return all
}

func (q *request) translated(all []string) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = q.translate(s)
	}
	return out
}

// logLines is how many lines of a log are shown.
const logLines = 200

// logBlock shows the newest lines of a log.
func (q *request) logBlock(name string) block {
	b := block{Title: q.say("Log"), Text: []string{q.say("The newest %d lines, the newest last.", logLines)}}
	found, err := q.b.Read.Logs(q.Context(), &adminv1.LogsRequest{Name: name, Lines: logLines})
	switch {
	case err != nil:
		b.Text, b.Problems = nil, []string{q.problem(err)}
	case len(found.GetLines()) == 0:
		b.Text = []string{q.say("There are no lines yet.")}
	}
	for _, raw := range found.GetLines() {
		b.Lines = append(b.Lines, q.logLine(raw))
	}
	return b
}

// logLine makes a line of a log readable.
func (q *request) logLine(raw string) line {
	var named map[string]any
	if json.Unmarshal([]byte(raw), &named) != nil {
		return line{Text: raw}
	}
	take := func(key string) string {
		s, _ := named[key].(string)
		delete(named, key)
		return s
	}
	l := line{Text: take("@message")}
	if at, err := time.Parse(time.RFC3339, take("@timestamp")); err == nil {
		l.At = at.In(q.zone).Format("01-02 15:04:05.000")
	}
	level := take("@level")
	if level == "error" || level == "warn" {
		l.Class = map[string]string{"error": "bad", "warn": "warn"}[level]
	}
	module := take("@module")
	if _, part, ok := strings.Cut(module, "."); ok {
		l.Text = part + ": " + l.Text
	}
	l.Text = strings.TrimSpace(level + "  " + l.Text)
	delete(named, "@caller")
	for _, key := range slices.Sorted(maps.Keys(named)) {
		l.Text += fmt.Sprintf("  %s=%v", key, named[key])
	}
	return l
}
