package home

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/home/consent"
	"github.com/switchboard-run/switchboard/home/support"
	"github.com/switchboard-run/switchboard/manifests"
)

// asked is a dropped-in extension that asks for something beyond itself.
type asked struct {
	manifest *manifests.Manifest // the newest one
	own      manifests.Request   // what the manifest asks for
	asks     manifests.Request   // also tools that are not allowed as it describes them
	more     manifests.Request   // of them, what was not allowed before
	allowed  manifests.Request
	code     string // of the question
	state    consent.State
	tools    bool // the default agent may use its tools
	older    bool // an older manifest is in force, or its newest one without some tools
	byConfig bool // config.yaml allows it
	told     bool // the question was asked, or too many were
}

// maxUnanswered is how many questions about an extension the owner gets without an answer. A
// later one is shown where they look: it could describe other tools all the time.
const maxUnanswered = 5

// openConsent opens the decisions of a home. What an earlier version ran on it counts as
// allowed.
func (f *files) openConsent() {
	f.consent = consent.Open(f.options.Home, func() consent.Decisions {
		if !hasStore(f.options.Home) {
			return consent.Decisions{}
		}
		d := consent.Decisions{}
		taken := foreignSecrets(withProviders(f.builtins, f.live.Config()), f.live.Config())
		for _, e := range f.dropped.Entries() {
			if m := e.Manifest; m != nil {
				d[e.ID] = consent.Decision{Allowed: m.Asks(taken...), Manifest: m.Source(), At: now(), By: "migration"}
			}
		}
		return d
	})
}

func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// hasStore reports whether a kernel ran on the home before.
func hasStore(h *config.Home) bool {
	_, err := os.Stat(h.Database())
	return err == nil
}

// prepareConsent makes the file of a new home before its store: what is dropped in before
// the first start is asked about.
func prepareConsent(h *config.Home) error {
	if hasStore(h) {
		return nil
	}
	if _, err := consent.Read(h); !errors.Is(err, consent.ErrNone) {
		return nil
	}
	_, err := consent.Update(h, nil, unchanged)
	return err
}

func unchanged(consent.Decisions) (bool, error) { return false, nil }

// foreignSecrets returns the names of secrets and variables that belong to entries.
func foreignSecrets(entries []manifests.Entry, c *config.Config) (names []string) {
	for _, e := range entries {
		names = append(names, reads(e, c)...)
	}
	return names
}

// judge decides about the dropped-in extensions of a plan, and puts those back to their last
// allowed manifest whose newest one asks for more.
func (f *files) judge(p *plan) {
	var decisions consent.Decisions
	if decisions, p.consentErr = f.consent.Current(); p.consentErr != nil {
		p.fileErrors = append(p.fileErrors, p.consentErr)
	}
	var builtins []manifests.Entry
	for _, e := range p.entries {
		if e.Builtin {
			builtins = append(builtins, e)
		}
	}
	taken := foreignSecrets(builtins, p.config)
	for i, e := range p.entries {
		m := e.Manifest
		if m == nil || e.Builtin || slices.ContainsFunc(builtins, func(b manifests.Entry) bool { return b.ID == e.ID }) {
			continue
		}
		a := newAsked(m, decisions, taken)
		if a == nil {
			p.newest[e.ID] = m
			continue
		}
		decided := decisions[e.ID]
		p.asked[e.ID] = a
		switch allows := p.config.Allows(e.ID); {
		case a.state == consent.Allowed:
			p.newest[e.ID] = m
		case allows:
			a.state, a.byConfig, a.more = consent.Allowed, true, nil
		case a.onlyTools():
			p.newest[e.ID], a.older = m, true
		default:
			if older := f.older(e.File, decided, taken); older != nil {
				p.entries[i].Manifest, a.older = older, true
			}
		}
	}
}

// newAsked returns what an extension asks for; nil: nothing.
func newAsked(m *manifests.Manifest, decisions consent.Decisions, taken []string) *asked {
	decided, own := decisions[m.ID], m.Asks(taken...)
	if len(own) == 0 {
		return nil
	}
	a := &asked{manifest: m, own: own, asks: own, allowed: decided.Allowed, tools: decided.Tools}
	if m.Provides.Tools {
		a.asks = own.With(decided.Wants)
	}
	a.more, a.code = decided.Allowed.Beyond(a.asks), consent.Code(m.ID, a.asks)
	a.state = decisions.Judge(m.ID, a.asks)
	a.told = decided.Asked == a.code || decided.Unanswered >= maxUnanswered
	return a
}

// all are also the tools that are allowed by name.
func (a *asked) all() manifests.Request { return a.allowed.Offers().With(a.asks) }

// onlyTools reports whether all that is not allowed are tools that it describes.
func (a *asked) onlyTools() bool { return a.allowed.Covers(a.own) }

// older returns the last manifest that was allowed; nil: there is none.
func (f *files) older(file string, d consent.Decision, taken []string) *manifests.Manifest {
	if d.Manifest == "" {
		return nil
	}
	m, err := manifests.Parse(file, []byte(d.Manifest))
	if err != nil || !d.Allowed.Covers(m.Asks(taken...)) {
		return nil
	}
	return m
}

// waiting says what the owner can do about an extension that is not allowed.
func (a *asked) waiting(id string) string {
	switch {
	case a.onlyTools():
		names := words.List("", a.more.Names(), maxListed)
		if a.state == consent.Refused {
			return words.Sprintf("you refused tools that it describes now, so agents don't get them: %s; "+
				"to allow them: switchboard extensions allow %s", names, id)
		}
		return words.Sprintf("it describes new or changed tools, which agents don't get until you allow them: %s; "+
			"to decide: switchboard extensions allow %s, or refuse %s", names, id, id)
	case a.state == consent.Refused && a.older:
		return words.Sprintf("you refused what its new version asks for, so its earlier one is in effect; "+
			"to allow it: switchboard extensions allow %s", id)
	case a.state == consent.Refused:
		return words.Sprintf("you refused what it asks for; to allow it: switchboard extensions allow %s", id)
	case a.older:
		return words.Sprintf("its new version asks for your permission to %v; until then its earlier one is in effect; "+
			"to decide: switchboard extensions allow %s, or refuse %s", a.list(), id, id)
	}
	return words.Sprintf("it asks for your permission to %v; to decide: switchboard extensions allow %s, or refuse %s",
		a.list(), id, id)
}

// list names what was not allowed before.
func (a *asked) list() string {
	lines := a.lines()
	if more := len(lines) - maxListed; more > 0 {
		lines = append(lines[:maxListed], words.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "; ")
}

// lines are what was not allowed before.
func (a *asked) lines() []string { return a.allowed.LinesOf(a.more, "") }

// maxListed is how many asks a line shows.
const maxListed = 5

// permitted returns an error for an extension that the owner did not allow.
func (p *plan) permitted(m *manifests.Manifest) error {
	a := p.asked[m.ID]
	if a == nil || a.manifest != m || a.state == consent.Allowed || a.onlyTools() {
		return nil
	}
	return errors.New(a.waiting(m.ID))
}

// pending returns the extensions whose question the owner has to answer: those that would
// run otherwise.
func (p *plan) pending() (ids []string) {
	for _, e := range p.entries {
		a := p.asked[e.ID]
		if e.Builtin || a == nil || a.state != consent.Asks {
			continue
		}
		if off, out := p.disabled[e.File]; out && off.Cause != manifests.Consent {
			continue
		}
		ids = append(ids, e.ID)
	}
	return ids
}

// followUp records which manifests ran with permission, and asks the owner the questions of
// a plan in force, each once.
func (i *Installation) followUp(p *plan) {
	if p.consentErr != nil {
		return
	}
	var told []string
	for _, id := range p.pending() {
		a := p.asked[id]
		if a.told {
			continue
		}
		notice := a.question(id, i.options.Home != nil && p.config.Sandboxed(id) && support.Detect().Landlock > 0)
		if _, err := i.Kernel.PublishOnce("consent:"+a.code, contract.TopicUserNotify, "", notice); err != nil {
			i.log.Warn("asking for consent failed", "extension", id, "error", err)
			continue
		}
		a.told = true
		told = append(told, id)
	}
	decisions, _ := i.files.consent.Current()
	isNew := func(id string, m *manifests.Manifest) bool {
		return p.members[id] != nil && decisions[id].Manifest != m.Source()
	}
	var ran []string
	for id, m := range p.newest {
		if isNew(id, m) {
			ran = append(ran, id)
		}
	}
	if len(told)+len(ran) == 0 {
		return
	}
	err := i.files.consent.Update(func(d consent.Decisions) (bool, error) {
		for _, id := range told {
			x := d[id]
			x.Asked = p.asked[id].code
			x.Unanswered++
			d[id] = x
		}
		for _, id := range ran {
			if a := p.asked[id]; a != nil && !d[id].Allowed.Covers(a.own) {
				continue // it was refused meanwhile
			}
			x := d[id]
			x.Manifest = p.newest[id].Source()
			d[id] = x
		}
		return true, nil
	})
	if err != nil {
		i.log.Warn("recording what runs with permission failed", "error", err)
	}
}

// maxLines is how many lines a question shows of what an extension asks for.
const maxLines = 40

// question returns the question about an extension, in English: the kernel translates it.
func (a *asked) question(id string, sandboxed bool) contract.UserNotify {
	m := a.manifest
	lines := []string{words.Sprintf("The extension %s (%s) was added. It asks for your permission to:", m.Name, id)}
	switch {
	case a.onlyTools():
		lines[0] = words.Sprintf("The extension %s (%s) has new or changed tools. It asks for your permission to:",
			m.Name, id)
	case a.older:
		lines[0] = words.Sprintf("The new version of the extension %s (%s) asks for your permission to:", m.Name, id)
	}
	add := func(all []string) {
		for i, line := range all {
			if i == maxLines {
				lines = append(lines, words.Sprintf("- and %d more: switchboard extensions allow %s", len(all)-i, id))
				break
			}
			lines = append(lines, "- "+line)
		}
	}
	add(a.lines())
	if uses := m.Shown("", a.asks...); len(uses) > 0 && !a.onlyTools() {
		lines = append(lines, "", words.Sprintf("Without asking:"))
		add(uses)
	}
	lines = append(lines, "")
	if !sandboxed && !a.onlyTools() {
		lines = append(lines, words.Sprintf("Nothing limits it on this machine: it could do everything that you can."))
	}
	if a.onlyTools() {
		lines = append(lines,
			words.Sprintf("Agents don't get these tools until you allow them. Its other tools go on working."))
	} else if a.older {
		lines = append(lines, words.Sprintf("Until you decide, it runs with the permissions that it had."))
	} else {
		lines = append(lines, words.Sprintf("It doesn't run until you allow it."))
	}
	command := func(decision string) string { return "/extensions " + decision + " " + a.code }
	actions := []contract.Action{{Label: words.Sprintf("Allow"), Command: command("allow")}}
	if m.Provides.Tools && !a.tools {
		actions = append(actions, contract.Action{
			Label: words.Sprintf("Allow, with its tools for the assistant"), Command: command("allow") + " tools",
		})
	}
	actions = append(actions, contract.Action{Label: words.Sprintf("Refuse"), Command: command("refuse")})
	return contract.UserNotify{Text: strings.Join(lines, "\n"), Actions: actions, Private: true}
}

// row describes it for its owner.
func (a *asked) row() *adminv1.Consent {
	return &adminv1.Consent{
		State: string(a.state), Code: a.code, Asks: a.all().Lines(""), More: a.lines(),
		Uses:  a.manifest.Shown("", a.asks...),
		Tools: a.tools, OffersTools: a.manifest.Provides.Tools, Older: a.older,
	}
}

// Decide implements admin.Installation.
func (d described) Decide(_ context.Context, q *adminv1.DecideRequest) (*adminv1.DecideResponse, error) {
	id, changed, err := d.files.decide(d.plan.Load(), q)
	if err != nil {
		return nil, err
	}
	if changed {
		d.replan()
	}
	for _, x := range d.Extensions(nil) {
		if x.GetId() == id {
			return &adminv1.DecideResponse{Extension: x, Changed: changed}, nil
		}
	}
	return nil, fmt.Errorf("%w: the extension %s was removed", contract.ErrNotFound, id)
}

// Decide decides about an extension of a home without a kernel.
func Decide(o Options, q *adminv1.DecideRequest) (*adminv1.DecideResponse, error) {
	f, err := openFiles(o, config.Open(o.Home, o.Env))
	if err != nil {
		return nil, err
	}
	id, changed, err := f.decide(f.plan(nil), q)
	if err != nil {
		return nil, err
	}
	p := f.plan(nil)
	return &adminv1.DecideResponse{
		Extension: &adminv1.Extension{Id: id, Consent: p.asked[id].row()}, Changed: changed,
	}, nil
}

// decide stores a decision.
func (f *files) decide(p *plan, q *adminv1.DecideRequest) (id string, changed bool, err error) {
	id, a, err := p.meant(q)
	if err != nil {
		return "", false, err
	}
	switch {
	case q.GetCode() != "" && q.GetCode() != a.code:
		return "", false, fmt.Errorf("%w: this question is outdated: %s has changed since", contract.ErrInvalid, id)
	case a.byConfig && !q.GetAllow():
		return "", false, fmt.Errorf("%w: config.yaml allows %s: change extensions.%s there", contract.ErrInvalid, id, id)
	}
	err = f.consent.Update(func(d consent.Decisions) (bool, error) {
		var x consent.Decision
		x, changed = a.decide(d[id], q)
		d[id] = x
		return changed, nil
	})
	return id, changed, err
}

// meant returns the extension that a decision is about.
func (p *plan) meant(q *adminv1.DecideRequest) (string, *asked, error) {
	for id, a := range p.asked {
		if id == q.GetId() || q.GetId() == "" && q.GetCode() == a.code {
			return id, a, nil
		}
	}
	for _, e := range p.entries {
		switch {
		case e.ID != q.GetId():
		case e.Builtin:
			return "", nil, fmt.Errorf("%w: %s is built in and needs no permission", contract.ErrInvalid, e.ID)
		case e.Manifest == nil:
			return "", nil, fmt.Errorf("%w: the manifest of %s is invalid: %w", contract.ErrInvalid, e.ID, e.Err)
		case q.GetAllow():
			return "", nil, fmt.Errorf("%w: %s asks for nothing beyond itself and needs no permission",
				contract.ErrInvalid, e.ID)
		default:
			return "", nil, fmt.Errorf("%w: %s asks for nothing beyond itself; to stop it, set extensions.%s.enabled: false "+
				"in config.yaml", contract.ErrInvalid, e.ID, e.ID)
		}
	}
	if q.GetId() == "" {
		return "", nil, fmt.Errorf("%w: no extension asks this any more", contract.ErrNotFound)
	}
	return "", nil, fmt.Errorf("%w: there is no extension %q", contract.ErrNotFound, q.GetId())
}

// decide returns a decision after a request. To refuse what a newer version asks for leaves
// the older one in effect; to refuse again ends that, too.
func (a *asked) decide(x consent.Decision, q *adminv1.DecideRequest) (after consent.Decision, changed bool) {
	tools := q.GetTools() && a.manifest.Provides.Tools
	switch {
	case q.GetAllow() && x.Allowed.Covers(a.asks) && (x.Tools || !tools):
		return x, false
	case q.GetAllow():
		x = x.Settle(a.own).Allow(a.asks)
		x.Manifest, x.Tools = a.manifest.Source(), x.Tools || tools
	case x.Refused == a.code && x.Manifest == "":
		return x, false
	case x.Refused != a.code && x.Manifest != "" && !x.Allowed.Covers(a.asks):
		x.Refused = a.code
	default:
		x.Wants = a.all().Offers() // to allow it again, they are shown
		x.Allowed, x.Manifest, x.Tools = nil, "", false
		x.Refused = consent.Code(a.manifest.ID, a.own.With(x.Wants))
	}
	x.By, x.At, x.Unanswered = q.GetBy(), now(), 0
	return x, true
}
