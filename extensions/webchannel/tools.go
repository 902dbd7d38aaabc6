package webchannel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk"
)

// tools are what the command line and the command /web use. Agents can't call them.
func (s *site) tools() []sdk.Tool {
	object := func(properties string) json.RawMessage {
		return json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{` + properties + `}}`)
	}
	return []sdk.Tool{
		{
			Name: "link", Command: "web", Private: true, Description: "Make a link that opens the page, once.",
			Schema: object(`"person":{"type":"string"}`), Call: s.link,
		},
		{
			Name: "create_token", Private: true, Description: "Make a token for a program.", Call: s.createToken,
			Schema: object(`"name":{"type":"string"},"person":{"type":"string"},"scopes":{"type":"array",` +
				`"items":{"type":"string"}}`),
		},
		{
			Name: "list_tokens", Private: true, ReadOnly: true, Description: "List the tokens of programs.",
			Schema: object(""), Call: s.listTokens,
		},
		{
			Name: "list_logins", Private: true, ReadOnly: true, Description: "List the logins of the page.",
			Schema: object(""), Call: s.listLogins,
		},
		{
			Name: "end_login", Private: true, Description: "End a login of the page.",
			Schema: object(`"id":{"type":"string"}`), Call: s.endLogin,
		},
		{
			Name: "revoke_token", Private: true, Description: "End a token of a program.", Call: s.revokeToken,
			Schema: object(`"name":{"type":"string"}`),
		},
	}
}

var errPeople = errors.New("only people can do this: on the command line, or with /web in a private chat")

func (s *site) link(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	say := func(text string, args ...any) string { return words.Say(c.Language, text, args...) }
	if c.Command == "web" {
		switch {
		case c.Group || c.Principal.Group != "":
			return sdk.ToolResult{Content: say("Others can read this. Send /web in a private chat.")}, nil
		case c.Channel == ID: // whoever has a login or a token for messages gets no other login by it
			return sdk.ToolResult{Content: say(
				"The page gives no links to itself. Run `switchboard web`, or send /web on another channel.")}, nil
		case c.Principal.Person == "":
			return sdk.ToolResult{}, errPeople
		}
		person := c.Principal.Person
		if slices.Contains(c.Principal.Accounts, contract.Owner) {
			person = contract.Owner
		}
		path, err := s.door.Link(ctx, person)
		if err != nil {
			return sdk.ToolResult{}, err
		}
		text := say("This link opens the page, once, within ten minutes:\n\n%s", s.address+path)
		if strings.Contains(s.address, "//127.0.0.1:") || strings.Contains(s.address, "//localhost:") {
			text += "\n\n" + say("It works on the machine where the assistant runs.")
		}
		return sdk.ToolResult{Content: text}, nil
	}
	var q struct{ Person string }
	if err := forPeople(c, &q); err != nil {
		return sdk.ToolResult{}, err
	}
	path, err := s.door.Link(ctx, q.Person)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	return sdk.JSON(map[string]string{"url": s.address + path, "text": s.address + path})
}

// forPeople decodes the arguments of a call from the owner's side, and refuses others.
func forPeople(c sdk.ToolCall, into any) error {
	if c.Agent != "" || c.Session != "" || c.Command != "" {
		return errPeople
	}
	return c.Decode(into)
}

func (s *site) createToken(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var q struct {
		Name, Person string
		Scopes       []string
	}
	if err := forPeople(c, &q); err != nil {
		return sdk.ToolResult{}, err
	}
	token, err := s.door.CreateToken(ctx, q.Name, q.Person, q.Scopes)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	return sdk.JSON(map[string]string{"name": q.Name, "token": token, "url": s.address})
}

func (s *site) listTokens(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	if err := forPeople(c, &struct{}{}); err != nil {
		return sdk.ToolResult{}, err
	}
	all, err := s.door.Tokens(ctx)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	for i := range all {
		all[i].Hash = ""
	}
	return sdk.JSON(map[string][]door.Token{"tokens": all})
}

func (s *site) revokeToken(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var q struct{ Name string }
	if err := forPeople(c, &q); err != nil {
		return sdk.ToolResult{}, err
	}
	if err := s.door.RevokeToken(ctx, q.Name); err != nil {
		return sdk.ToolResult{}, err
	}
	return sdk.JSON(map[string]string{"text": "The token " + q.Name + " is revoked."})
}

// everyone is the visitor to whom all logins are shown.
var everyone = door.Visitor{Person: contract.Owner, Role: contract.Owner}

func (s *site) listLogins(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	if err := forPeople(c, &struct{}{}); err != nil {
		return sdk.ToolResult{}, err
	}
	all, err := s.door.Logins(ctx, everyone)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	return sdk.JSON(map[string][]door.Login{"logins": all})
}

func (s *site) endLogin(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var q struct{ ID string }
	if err := forPeople(c, &q); err != nil {
		return sdk.ToolResult{}, err
	}
	if err := s.door.EndLogin(ctx, everyone, q.ID); err != nil {
		return sdk.ToolResult{}, fmt.Errorf("end the login %q: %w: `switchboard web logins` shows the logins", q.ID, err)
	}
	return sdk.JSON(map[string]string{"text": "The login " + q.ID + " has ended."})
}
