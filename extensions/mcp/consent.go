package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/mcpfile"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

// topicAnswered is where the owner's answers arrive.
const topicAnswered = ID + ".answered"

// askLife is how long a question stays open.
const askLife = 30 * 24 * time.Hour

// maxUnanswered is how many questions about a server the owner gets without an answer. A later
// one is shown where they look: a server could change its tools all the time.
const maxUnanswered = 5

// answerAllow is the owner's yes.
var answerAllow = words.Sprintf("Allow")

// decide asks the owner about a server or about its changed tools, if that is needed, and
// starts an allowed one whose tools are not known.
func (e *extension) decide(ctx context.Context, s *server) error {
	r := e.book.get(s.ID)
	switch state := s.state(); {
	case state == mcpfile.Refused:
		return nil
	case state == "":
		return e.ask(ctx, s, "server "+s.hash, s.question())
	case r.Listed != s.hash:
		s.mu.Lock()
		stuck := s.failed || s.starting != nil || s.session != nil
		s.mu.Unlock()
		if !stuck {
			go s.look()
		}
		return nil
	}
	if changed := changedTools(r); len(changed) > 0 {
		if e.allowsAll(s) {
			return e.allowTools(s, changed, "config.yaml")
		}
		return e.ask(ctx, s, "tools "+sumOf(changed), s.questionAbout(changed))
	}
	return nil
}

// allowsAll reports whether the owner allowed the server in config.yaml: no one may be
// there to answer.
func (e *extension) allowsAll(s *server) bool {
	return slices.ContainsFunc(e.setup.Allow, func(name string) bool { return mcpfile.ID(name) == s.ID })
}

// look starts a server so that its tools are known.
func (s *server) look() {
	ctx, cancel := context.WithTimeout(s.e.background, installTimeout+startTimeout)
	defer cancel()
	_, release, err := s.use(ctx)
	if err != nil {
		s.e.wake() // again, unless it failed too often
		return
	}
	release()
}

// changedTools are those that the owner neither allowed nor refused as they are now.
func changedTools(r record) (all []toolInfo) {
	for _, t := range r.Tools {
		if t.Broken == "" && t.Allowed != t.sum() && t.Refused != t.sum() {
			all = append(all, t)
		}
	}
	return all
}

func sumOf(all []toolInfo) string {
	var sums []string
	for _, t := range all {
		sums = append(sums, t.sum()[:16])
	}
	return strings.Join(sums, " ")
}

// ask asks the owner once, and withdraws what they were asked about the server before. The
// question is published with a dedupe key and noted after it, so a crash between the two
// neither loses it nor asks twice.
func (e *extension) ask(ctx context.Context, s *server, about, text string) error {
	r, ref := e.book.get(s.ID), s.ID+" "+about
	if r.Asked == ref || r.Unanswered >= maxUnanswered {
		return nil
	}
	key := fmt.Sprintf("%s %d %d", ref, r.Asks, time.Now().Unix()/int64(time.Hour/time.Second))
	effects := []sdk.Effect{sdk.Publish(contract.TopicUserAsk, contract.UserAsk{
		Text: text, Kind: contract.AskChoose, Options: []string{answerAllow, words.Sprintf("Refuse")},
		ExpiresSeconds: int64(askLife / time.Second), Topic: topicAnswered, Ref: ref, Translate: true,
	}, sdk.Dedupe(key))}
	if r.AskedKey != key {
		effects = append(effects, r.unask()...)
	}
	if _, err := e.k.Commit(ctx, effects...); err != nil {
		return fmt.Errorf("ask for consent to the MCP server %s: %w", s.Name, err)
	}
	return e.book.change(s.ID, func(r *record) {
		r.Asked, r.AskedKey = ref, key
		r.Asks++
		r.Unanswered++
	})
}

// unask withdraws the question that was asked last, if it is open.
func (r record) unask() []sdk.Effect {
	if r.AskedKey == "" {
		return nil
	}
	return []sdk.Effect{sdk.Withdraw(r.AskedKey)}
}

// question describes what a server may do.
func (s *server) question() string {
	lines := []string{words.Sprintf("mcp.json has a new or changed MCP server, %s.", s.Name), ""}
	if s.Transport == mcpfile.Stdio {
		lines = append(lines, words.Sprintf("It runs this program: %s",
			cut(strings.Join(append([]string{s.Command}, s.Args...), " "), 500)))
	} else {
		lines = append(lines, words.Sprintf("It is at %s", cut(s.URL, 300)))
	}
	lines = append(lines, words.Sprintf("It can:"))
	lines = append(lines, s.permissions()...)
	lines = append(lines,
		"- "+words.Sprintf("give tools to the assistant (those that aren't known to only read ask you before each use)"),
		"", words.Sprintf("Allow it?"))
	return strings.Join(lines, "\n")
}

// permissions lists what the server may use, in plain words.
func (s *server) permissions() (lines []string) {
	add := func(text string) { lines = append(lines, "- "+text) }
	if s.Transport != mcpfile.Stdio {
		if names := slices.Sorted(maps.Keys(s.Headers)); len(names) > 0 {
			add(words.Sprintf("get these headers with each request: %s", strings.Join(names, ", ")))
		}
		add(words.Sprintf("see what the assistant sends to its tools"))
		return lines
	}
	for _, f := range s.Files {
		if f.Write {
			add(words.Sprintf("read and change %s", f.Path))
		} else {
			add(words.Sprintf("read the files in %s", f.Path))
		}
	}
	switch {
	case s.AnyNetwork():
		add(words.Sprintf("connect to any host"))
	case len(s.Network) > 0:
		add(words.Sprintf("connect to %s (the ports are enforced, the names are not)", strings.Join(s.Network, ", ")))
	}
	if names := slices.Sorted(maps.Keys(s.Env)); len(names) > 0 {
		add(words.Sprintf("get these variables: %s", strings.Join(names, ", ")))
	}
	if s.Policy == nil {
		add(words.Sprintf("use all your files: there is no sandbox"))
	}
	return lines
}

// maxShown is how many changed tools a question shows.
const maxShown = 8

// questionAbout describes tools that are new or have changed.
func (s *server) questionAbout(changed []toolInfo) string {
	lines := []string{words.Sprintf(
		"The MCP server %s has changed its tools. They are withheld until you allow them.", s.Name)}
	for i, t := range changed {
		if i == maxShown {
			lines = append(lines, "", words.Sprintf("and %d more: /mcp tools %s", len(changed)-maxShown, s.ID))
			break
		}
		is := describeChange(t)
		switch {
		case t.Allowed == "":
			lines = append(lines, "", words.Sprintf("New tool: %s", t.Name), "> "+is)
		case is == t.Was:
			lines = append(lines, "", words.Sprintf("Changed tool: %s takes other arguments.", t.Name), "> "+is)
		default:
			lines = append(lines, "", words.Sprintf("Changed tool: %s", t.Name), words.Sprintf("Before: %s", t.Was),
				words.Sprintf("After: %s", is))
		}
	}
	return strings.Join(append(lines, "", words.Sprintf("Allow them?")), "\n")
}

// handle takes the owner's answers.
func (e *extension) handle(_ context.Context, ev sdk.Event) (sdk.Effects, error) {
	if ev.Topic != topicAnswered {
		return nil, sdk.Drop("mcp does not know the topic " + ev.Topic)
	}
	var a contract.UserAnswer
	if err := ev.Decode(&a); err != nil {
		return nil, sdk.Drop(err.Error())
	}
	if strings.HasPrefix(a.Ref, elicitRef) {
		e.answers.give(a) // else the call has ended
		return nil, nil
	}
	id, about, _ := strings.Cut(a.Ref, " ")
	s := e.server(id)
	if s == nil || e.book.get(s.ID).Asked != a.Ref {
		return nil, nil // it was removed or changed meanwhile
	}
	if a.Outcome != contract.AskAnswered {
		return nil, nil // asked again after the next change, or decided on the command line
	}
	kind, what, _ := strings.Cut(about, " ")
	allow := words.Means(a.Answer, answerAllow)
	if kind == "tools" {
		changed := changedTools(e.book.get(s.ID))
		if sumOf(changed) != what {
			return nil, e.askAgain(s)
		}
		if allow {
			return nil, e.allowTools(s, changed, a.By)
		}
		return nil, e.refuseTools(s, changed)
	}
	if what != s.hash {
		return nil, e.askAgain(s)
	}
	return nil, e.setDecision(s, allow, a.By)
}

// askAgain asks about the server as it is now: the owner has answered an outdated question.
func (e *extension) askAgain(s *server) error {
	err := e.book.change(s.ID, func(r *record) { r.Asked, r.Unanswered = "", 0 })
	e.wake()
	return err
}

// setDecision stores the owner's decision about a server.
func (e *extension) setDecision(s *server, allow bool, by string) error {
	err := e.book.change(s.ID, func(r *record) {
		r.Hash, r.By, r.Asked, r.Unanswered, r.Decision = s.hash, by, "", 0, mcpfile.Refused
		if allow {
			r.Decision = mcpfile.Allowed
		}
	})
	if err != nil {
		return err
	}
	e.log.Info("the owner decided about an MCP server", "server", s.ID, "allowed", allow, "by", by)
	s.restart()
	e.wake()
	return nil
}

func (e *extension) allowTools(s *server, changed []toolInfo, by string) error {
	e.log.Info("the owner allowed changed tools of an MCP server", "server", s.ID, "tools", len(changed), "by", by)
	return e.changeTools(s, changed, func(t *toolInfo) { t.Allowed, t.Was = t.sum(), describeChange(*t) })
}

func (e *extension) refuseTools(s *server, changed []toolInfo) error {
	return e.changeTools(s, changed, func(t *toolInfo) { t.Refused = t.sum() })
}

func (e *extension) changeTools(s *server, changed []toolInfo, change func(*toolInfo)) error {
	err := e.book.change(s.ID, func(r *record) {
		r.Asked, r.Unanswered = "", 0
		for i := range r.Tools {
			sum := r.Tools[i].sum()
			if slices.ContainsFunc(changed, func(t toolInfo) bool { return t.sum() == sum }) {
				change(&r.Tools[i])
			}
		}
	})
	e.wake()
	return err
}

// named is the argument of the tools that decide about a server.
type named struct {
	Server string `json:"server"`
}

var namedSchema = json.RawMessage(`{"type":"object","additionalProperties":false,"required":["server"],` +
	`"properties":{"server":{"type":"string"}}}`)

// decideByTool allows or refuses a server for the command line.
func (e *extension) decideByTool(c sdk.ToolCall, allow bool) (sdk.ToolResult, error) {
	if c.Agent != "" || c.Session != "" {
		return sdk.ToolResult{}, errors.New("only the owner decides about MCP servers, on the command line or by a button")
	}
	var args named
	if err := c.Decode(&args); err != nil {
		return sdk.ToolResult{}, err
	}
	s := e.server(args.Server)
	if s == nil {
		return sdk.ToolResult{}, e.unknown(args.Server)
	}
	unask := e.book.get(s.ID).unask()
	if err := e.setDecision(s, allow, "command line"); err != nil {
		return sdk.ToolResult{}, err
	}
	if !allow {
		return sdk.JSON(map[string]string{"text": fmt.Sprintf("%s is refused: it doesn't run.", s.Name)}, unask...)
	}
	if err := e.allowTools(s, changedTools(e.book.get(s.ID)), "command line"); err != nil {
		return sdk.ToolResult{}, err
	}
	return sdk.JSON(map[string]string{"text": fmt.Sprintf("%s is allowed.", s.Name)}, unask...)
}

func (e *extension) unknown(name string) error {
	var names []string
	for _, s := range e.all() {
		names = append(names, s.ID)
	}
	return words.Errorf("there is no MCP server %q in mcp.json, which has: %s", name, strings.Join(names, ", "))
}
