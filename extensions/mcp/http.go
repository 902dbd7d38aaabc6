package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/mcpfile"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/mcp/remote"
	"github.com/switchboard-run/switchboard/sdk"
)

// logins has the login to a server, made when it is needed first.
type logins struct {
	mu    sync.Mutex
	login *remote.Login
}

// openHTTP opens a way to a server on another machine.
func openHTTP(s *server) (link, error) {
	login, err := s.login()
	if err != nil {
		return nil, err
	}
	return remote.Open(s.URL, s.Headers, login)
}

// rejected marks the SDK's errors of a request that failed while the session goes on.
const rejected = "rejected by transport: "

// notSent is such an error without the SDK's words.
func notSent(err error) error {
	if _, reason, ok := strings.Cut(err.Error(), rejected); ok {
		return errors.New(reason)
	}
	return err
}

// login returns the login to the server; nil: the headers have one.
func (s *server) login() (*remote.Login, error) {
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			return nil, nil //nolint:nilnil // none is needed
		}
	}
	s.logs.mu.Lock()
	defer s.logs.mu.Unlock()
	if s.logs.login != nil {
		return s.logs.login, nil
	}
	client := remote.Client{MetadataURL: s.OAuth.MetadataURL, ID: s.OAuth.ClientID, Secret: s.OAuth.Secret}
	login, err := remote.NewLogin(s.e.k.DataDir(), s.ID, s.URL, client, s.tellToLogIn)
	if err == nil {
		s.logs.login = login
	}
	return login, err
}

// missingLogin is remote.ErrLogin if the server wants a login.
func (s *server) missingLogin() error {
	s.logs.mu.Lock()
	defer s.logs.mu.Unlock()
	if s.logs.login == nil {
		return nil
	}
	return s.logs.login.Missing()
}

// tellToLogIn tells the owner, once after each login, that the server wants one.
func (s *server) tellToLogIn(logins int) {
	text := words.Sprintf("The MCP server %s wants you to log in. Run `switchboard mcp login %s`, or send me "+
		"/mcp login %s in a private chat.", s.Name, s.ID, s.ID)
	ctx, cancel := context.WithTimeout(s.e.background, time.Minute)
	go func() {
		defer cancel()
		_, err := s.e.k.Commit(ctx, sdk.Publish(contract.TopicUserNotify, contract.UserNotify{Text: text, Translate: true},
			sdk.Dedupe(fmt.Sprintf("login/%s/%d", s.hash, logins))))
		if err != nil && ctx.Err() == nil {
			s.e.log.Warn("tell the owner to log in", "server", s.ID, "error", err)
		}
	}()
}

var loginSchema = json.RawMessage(`{"type":"object","additionalProperties":false,"required":["server","address"],` +
	`"properties":{"server":{"type":"string"},"address":{"type":"string","maxLength":8000,` +
	`"description":"where the browser is sent; to finish, the address that it was sent to"}}}`)

// loginOf returns the login to the server that a call of the owner names.
func (e *extension) loginOf(name string) (*server, *remote.Login, error) {
	s := e.server(name)
	switch {
	case s == nil:
		return nil, nil, e.unknown(name)
	case s.Transport != mcpfile.HTTP:
		return nil, nil, words.Errorf("the MCP server %s runs on this machine and needs no login", s.Name)
	}
	if err := s.refusal(); err != nil {
		return nil, nil, err
	}
	login, err := s.login()
	if err == nil && login == nil {
		err = words.Errorf("mcp.json has an Authorization header for %s: remove it to log in", s.Name)
	}
	return s, login, err
}

// beginLogin begins a login for the command line.
func (e *extension) beginLogin(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	_, login, address, err := e.decodeLogin(c)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	opened, err := login.Begin(ctx, address)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	return sdk.JSON(map[string]string{"url": opened})
}

// finishLogin finishes it.
func (e *extension) finishLogin(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	s, login, address, err := e.decodeLogin(c)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	return e.loggedIn(ctx, c, s, login, address)
}

func (e *extension) decodeLogin(c sdk.ToolCall) (*server, *remote.Login, string, error) {
	if c.Agent != "" || c.Session != "" {
		return nil, nil, "", errors.New("only the owner logs in, on the command line or by /mcp login")
	}
	var args struct{ Server, Address string }
	if err := c.Decode(&args); err != nil {
		return nil, nil, "", err
	}
	s, login, err := e.loginOf(args.Server)
	return s, login, args.Address, err
}

// loggedIn finishes a login, and connects the server.
func (e *extension) loggedIn(
	ctx context.Context, c sdk.ToolCall, s *server, login *remote.Login, address string,
) (sdk.ToolResult, error) {
	if err := login.Finish(ctx, address); err != nil {
		return sdk.ToolResult{}, err
	}
	s.restart()
	e.wake()
	return said(words.Say(c.Language, "You are logged in to %s.", s.Name))
}

// pasted is the port of the address that the browser of a person in a chat is sent to, unless
// mcp.json names one: nothing has to be there, they copy the address.
const pasted = 8976

// loginByCommand is /mcp login.
func (e *extension) loginByCommand(ctx context.Context, c sdk.ToolCall, name, address string) (sdk.ToolResult, error) {
	if c.Command == "" || c.Group || !c.Principal.SeesOwners() {
		return sdk.ToolResult{}, words.Errorf("only the owner logs in to MCP servers, in a private chat")
	}
	s, login, err := e.loginOf(name)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if address != "" {
		return e.loggedIn(ctx, c, s, login, address)
	}
	port := pasted
	if s.OAuth.CallbackPort != 0 {
		port = s.OAuth.CallbackPort
	}
	opened, err := login.Begin(ctx, fmt.Sprintf("http://127.0.0.1:%d/callback", port))
	if err != nil {
		return sdk.ToolResult{}, err
	}
	return said(words.Say(c.Language, "Open this address and agree:") + "\n\n" + opened + "\n\n" +
		words.Say(c.Language, "The browser then shows a page that can't be reached. Copy its address, and send me:") +
		"\n\n" + words.Say(c.Language, "/mcp login %s ADDRESS", s.ID))
}
