// Package extensions answers /extensions: the owner sees what dropped-in extensions ask for,
// and allows or refuses it. The installation asks the questions; this extension reports the
// answers to it and keeps nothing.
//
// It answers the owner alone, in a private conversation on a built-in channel: a dropped-in
// channel could report any message as the owner's. No agent can call its tool.
package extensions

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// ID is the extension's id.
const ID = "extensions"

// New returns the extension.
func New() sdk.Extension {
	var o owner
	return sdk.Extension{
		ID: ID,
		Start: func(_ context.Context, kernel *sdk.Kernel) error {
			o.read, o.manage = admin.Reader(kernel.Services().Conn), admin.Manager(kernel.Services().Conn)
			return nil
		},
		Tools: []sdk.Tool{{
			Name: "decide", Command: "extensions", Private: true, Idempotent: true,
			Description: "List extensions, and allow or refuse what they ask for. For people only.",
			Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"decision":{"type":"string",` +
				`"description":"allow NAME, allow NAME tools, refuse NAME; empty: list them"}}}`),
			Call: func(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
				text, err := o.answer(ctx, c)
				return sdk.ToolResult{Content: text}, err
			},
		}},
	}
}

// owner is the owner's side of the kernel.
type owner struct {
	read   adminv1.ReadClient
	manage adminv1.ManageClient
}

var errPeople = errors.New("only a person can allow an extension: ask them to send /extensions")

func (o *owner) answer(ctx context.Context, c sdk.ToolCall) (string, error) {
	say := func(text string, args ...any) string { return words.Say(c.Language, text, args...) }
	switch {
	case c.Command != "extensions":
		return "", errPeople
	case c.Group || c.Principal.Group != "":
		return say("Others can read this. Send /extensions in a private chat."), nil
	case !slices.Contains(c.Principal.Accounts, contract.Owner):
		return say("Only the owner can use /extensions."), nil
	}
	var given struct {
		Decision string `json:"decision"`
	}
	if err := c.Decode(&given); err != nil {
		return "", err
	}
	found, err := o.read.Extensions(ctx, &adminv1.ExtensionsRequest{})
	if err != nil {
		return "", err
	}
	all := found.GetExtensions()
	fields := strings.Fields(given.Decision)
	if len(fields) == 0 || len(fields) == 1 && fields[0] == "list" {
		return list(all, c.Language), nil
	}
	tools := len(fields) == 3 && fields[0] == "allow" && (fields[2] == "tools" || fields[2] == "--tools")
	if len(fields) != 2 && !tools || fields[0] != "allow" && fields[0] != "refuse" {
		return say("Usage: /extensions, /extensions allow NAME, /extensions allow NAME tools, /extensions refuse NAME"), nil
	}
	if !slices.ContainsFunc(all, func(x *adminv1.Extension) bool { return x.GetId() == c.Channel && x.GetBuiltin() }) {
		return say("This channel is an extension itself, so it can't report your decision. "+
			"Decide in the terminal: switchboard extensions %s %s", fields[0], nameOf(all, fields[1])), nil
	}
	return o.decide(ctx, c, all, &adminv1.DecideRequest{Allow: fields[0] == "allow", Tools: tools}, fields[1])
}

// decide reports a decision about the extension or the question that a name means.
func (o *owner) decide(
	ctx context.Context, c sdk.ToolCall, all []*adminv1.Extension, q *adminv1.DecideRequest, name string,
) (string, error) {
	say := func(text string, args ...any) string { return words.Say(c.Language, text, args...) }
	i := slices.IndexFunc(all, func(x *adminv1.Extension) bool { return x.GetConsent() != nil && isMeant(x, name) })
	switch {
	case i < 0 && slices.ContainsFunc(all, func(x *adminv1.Extension) bool { return x.GetId() == name }):
		return say("%s asks for nothing, so there is nothing to decide.", name), nil
	case i < 0:
		return say("This question is outdated, or there is no extension %s. See /extensions", name), nil
	}
	x := all[i]
	q.Id, q.Code, q.By = x.GetId(), x.GetConsent().GetCode(), c.Sender
	done, err := o.manage.Decide(ctx, q)
	if err != nil {
		return "", err
	}
	switch after := done.GetExtension().GetConsent(); {
	case q.GetAllow() && after.GetTools():
		return say("%s is allowed, and the assistant can use its tools.", x.GetId()), nil
	case q.GetAllow() && after.GetOffersTools():
		return say("%s is allowed. To let the assistant use its tools: /extensions allow %s tools", x.GetId(), x.GetId()), nil
	case q.GetAllow():
		return say("%s is allowed.", x.GetId()), nil
	case after.GetOlder():
		return say("What %s asks for in addition is refused. It goes on with the permissions that it had; to stop it: "+
			"/extensions refuse %s", x.GetId(), x.GetId()), nil
	}
	return say("%s is refused, and doesn't run.", x.GetId()), nil
}

// isMeant reports whether a name is the id of an extension, or the code of its question.
func isMeant(x *adminv1.Extension, name string) bool {
	return x.GetId() == name || x.GetConsent().GetCode() == name
}

func nameOf(all []*adminv1.Extension, name string) string {
	for _, x := range all {
		if x.GetConsent() != nil && isMeant(x, name) {
			return x.GetId()
		}
	}
	return name
}

// list shows the dropped-in extensions, those that ask first.
func list(all []*adminv1.Extension, language string) string {
	say := func(text string, args ...any) string { return words.Say(language, text, args...) }
	var waiting, others []string
	for _, x := range all {
		a := x.GetConsent()
		switch {
		case x.GetBuiltin():
		case a == nil:
			others = append(others, say("- %s: asks for nothing", x.GetId()))
		case a.GetState() == "allowed" && a.GetTools():
			others = append(others, say("- %s: allowed, with its tools for the assistant", x.GetId()))
		case a.GetState() == "allowed":
			others = append(others, say("- %s: allowed", x.GetId()))
		case a.GetState() == "refused":
			others = append(others, say("- %s: refused", x.GetId()))
		default:
			waiting = append(waiting, question(x, language))
		}
	}
	if len(waiting)+len(others) == 0 {
		return say("No extensions were added.")
	}
	if len(others) > 0 {
		waiting = append(waiting, strings.Join(others, "\n"))
	}
	return strings.Join(waiting, "\n\n")
}

// question shows what an extension asks for, and how to decide.
func question(x *adminv1.Extension, language string) string {
	lines := []string{words.Say(language, "%s asks for your permission to:", x.GetId())}
	for _, line := range x.GetConsent().GetMore() {
		lines = append(lines, "- "+words.Translate(language, line))
	}
	lines = append(lines, "/extensions allow "+x.GetId())
	if x.GetConsent().GetOffersTools() {
		lines = append(lines, "/extensions allow "+x.GetId()+" tools")
	}
	return strings.Join(append(lines, "/extensions refuse "+x.GetId()), "\n")
}
