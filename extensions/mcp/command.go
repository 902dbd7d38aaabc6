package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/switchboard-run/switchboard/contract/mcpfile"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

var commandSchema = json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{` +
	`"words":{"type":"array","items":{"type":"string"},` +
	`"description":"list, tools SERVER, prompt NAME ARGUMENTS, login SERVER, restart SERVER"}}}`)

// ownTools are for people and the command line. Private, they are in no grant of a whole
// extension.
func (e *extension) ownTools() []sdk.Tool {
	return []sdk.Tool{
		{
			Name: "servers", Description: "List the MCP servers. Of a prompt, the text.", Private: true, Command: "mcp",
			Schema: commandSchema, Idempotent: true, Call: e.command,
		},
		{
			Name: "status", Description: "List the MCP servers as JSON.", Private: true, ReadOnly: true,
			Call: func(context.Context, sdk.ToolCall) (sdk.ToolResult, error) { return sdk.JSON(e.statuses()) },
		},
		{
			Name: "allow", Description: "Allow an MCP server.", Private: true, Idempotent: true, Schema: namedSchema,
			Call: func(_ context.Context, c sdk.ToolCall) (sdk.ToolResult, error) { return e.decideByTool(c, true) },
		},
		{
			Name: "refuse", Description: "Refuse an MCP server.", Private: true, Idempotent: true, Schema: namedSchema,
			Call: func(_ context.Context, c sdk.ToolCall) (sdk.ToolResult, error) { return e.decideByTool(c, false) },
		},
		{
			Name: "login", Description: "Begin a login to an MCP server.", Private: true,
			Schema: loginSchema, Call: e.beginLogin,
		},
		{
			Name: "login_finish", Description: "Finish a login with the address that the browser was sent to.", Private: true,
			Schema: loginSchema, Call: e.finishLogin,
		},
	}
}

func (e *extension) statuses() (all []mcpfile.Status) {
	taken := map[string]string{}
	for _, s := range e.all() {
		r := e.book.get(s.ID)
		x := mcpfile.Status{
			ID: s.ID, Name: s.Name, Transport: s.Transport, URL: s.URL, CallbackPort: s.OAuth.CallbackPort,
			Consent: s.state(), By: r.By, Version: r.Version, Title: r.Title, Tools: []string{}, Problems: s.problems(),
		}
		for _, p := range s.permissions() {
			x.Permissions = append(x.Permissions, strings.TrimPrefix(p, "- "))
		}
		if s.Transport == mcpfile.Stdio {
			x.Command = strings.Join(append([]string{s.Command}, s.Args...), " ")
		}
		if x.Consent == "" {
			x.Consent = mcpfile.Waiting
		}
		x.State, x.Error, x.Broken = s.status()
		for _, o := range s.offers(taken) {
			x.Tools = append(x.Tools, ID+"/"+o.Name)
		}
		for _, p := range r.Prompts {
			x.Prompts = append(x.Prompts, s.ID+"/"+p.Name)
		}
		all = append(all, x)
	}
	return all
}

// command is /mcp.
func (e *extension) command(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct{ Words []string }
	if err := c.Decode(&args); err != nil {
		return sdk.ToolResult{}, err
	}
	given := slices.Concat(args.Words, []string{"", ""})
	switch verb := given[0]; verb {
	case "", "list":
		return said(e.list(c.Language))
	case "tools":
		return e.listTools(c.Language, given[1])
	case "prompt", "prompts":
		if given[1] == "" {
			return said(e.listPrompts(c.Language))
		}
		return e.prompt(ctx, c, given[1], args.Words[2:])
	case "login":
		return e.loginByCommand(ctx, c, given[1], strings.Join(given[2:], ""))
	case "restart":
		s := e.server(given[1])
		if s == nil {
			return sdk.ToolResult{}, e.unknown(given[1])
		}
		s.restart()
		e.wake()
		return said(words.Say(c.Language, "%s starts again when it is needed.", s.Name))
	}
	return sdk.ToolResult{}, words.Errorf("unexpected %q. Usage: /mcp list, /mcp tools SERVER, "+
		"/mcp prompt NAME ARGUMENTS, /mcp login SERVER, /mcp restart SERVER", given[0])
}

func said(text string) (sdk.ToolResult, error) { return sdk.JSON(map[string]string{"text": text}) }

// list is a line for each server.
func (e *extension) list(language string) string {
	say := func(text string) string { return words.Say(language, text) }
	consents := map[string]string{
		mcpfile.Allowed: say("allowed"), mcpfile.Refused: say("refused"), mcpfile.Waiting: say("waiting for your consent"),
	}
	states := map[string]string{
		mcpfile.StateIdle: say("not running"), mcpfile.StateStarting: say("starting"), mcpfile.StateRunning: say("running"),
		mcpfile.StateBackingOff: say("backing off"), mcpfile.StateFailed: say("failed"),
	}
	var lines []string
	for _, x := range e.statuses() {
		line := x.Name + ": " + consents[x.Consent]
		if x.Consent == mcpfile.Allowed {
			tools, n := len(x.Tools), len(x.Prompts)
			line += ", " + states[x.State] + ", " + words.Count(language, "%d tool", "%d tools", tools, tools)
			if n > 0 {
				line += ", " + words.Count(language, "%d prompt", "%d prompts", n, n)
			}
		}
		if x.Error != "" {
			line += ". " + x.Error
		}
		lines = append(lines, line)
		for _, p := range x.Problems {
			lines = append(lines, "  "+words.Translate(language, p))
		}
	}
	return strings.Join(lines, "\n")
}

func (e *extension) listTools(language, name string) (sdk.ToolResult, error) {
	var lines []string
	for _, x := range e.statuses() {
		if name == "" || x.ID == mcpfile.ID(name) {
			lines = append(lines, x.Tools...)
			for _, p := range x.Problems {
				lines = append(lines, words.Translate(language, p))
			}
		}
	}
	if e.server(name) == nil && name != "" {
		return sdk.ToolResult{}, e.unknown(name)
	}
	if len(lines) == 0 {
		lines = []string{words.Say(language, "There are no tools.")}
	}
	return said(strings.Join(lines, "\n"))
}

func (e *extension) listPrompts(language string) string {
	var lines []string
	for _, s := range e.all() {
		for _, p := range e.book.get(s.ID).Prompts {
			line := strings.Join(append([]string{s.ID + "/" + p.Name}, p.usage()...), " ")
			if p.Description != "" {
				line += ": " + p.Description
			}
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return words.Say(language, "There are no prompts.")
	}
	return strings.Join(lines, "\n")
}

// usage names the arguments, those that may be left out in brackets.
func (p prompt) usage() (all []string) {
	for i, a := range p.Arguments {
		if a = strings.ToUpper(a); i >= p.Required {
			a = "[" + a + "]"
		}
		all = append(all, a)
	}
	return all
}

// findPrompt finds a prompt by its name, or by <server>/<name>.
func (e *extension) findPrompt(name string) (s *server, p prompt, err error) {
	id, short, qualified := strings.Cut(name, "/")
	n := 0
	for _, x := range e.all() {
		for _, q := range e.book.get(x.ID).Prompts {
			if q.Name == name || qualified && mcpfile.ID(id) == x.ID && q.Name == short {
				s, p = x, q
				n++
			}
		}
	}
	switch n {
	case 0:
		return nil, p, words.Errorf("there is no prompt %q: /mcp prompt lists them", name)
	case 1:
		return s, p, nil
	}
	return nil, p, words.Errorf("several servers have a prompt %q: write SERVER/%s", name, name)
}

// prompt answers with the text of a prompt, which the person can send.
func (e *extension) prompt(ctx context.Context, c sdk.ToolCall, name string, given []string) (sdk.ToolResult, error) {
	s, p, err := e.findPrompt(name)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	given = slices.DeleteFunc(slices.Clone(given), func(w string) bool { return w == "" })
	if len(given) < p.Required {
		return sdk.ToolResult{}, words.Errorf("the prompt %s needs %s", name, strings.Join(p.Arguments[:p.Required], ", "))
	}
	arguments := map[string]string{}
	for i, a := range p.Arguments {
		switch {
		case i >= len(given):
		case i == len(p.Arguments)-1:
			arguments[a] = strings.Join(given[i:], " ")
		default:
			arguments[a] = given[i]
		}
	}
	return s.do(ctx, c, "the prompt", func(ctx context.Context, x *session) (sdk.ToolResult, error) {
		r, err := x.GetPrompt(ctx, &mcp.GetPromptParams{Name: p.Name, Arguments: arguments})
		if err != nil {
			return sdk.ToolResult{}, err
		}
		out := &content{e: e, server: s}
		for _, m := range r.Messages {
			out.add(ctx, m.Content)
		}
		return said(out.text.String())
	})
}
