package telegramchannel

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"
	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/sdk/httpcall"
)

// pollGrace is added to the requested poll time for the timeout.
const pollGrace = 10 * time.Second

var tokenPattern = regexp.MustCompile(`^[0-9]+:[A-Za-z0-9_-]+$`)

// api is the connection to the Bot API. The library makes the calls; api is its HTTP
// client, which reports whether a failed call was sent. api polls itself, because the
// library confirms updates before they are stored.
type api struct {
	bot       *bot.Bot
	url       string
	token     string
	transport transport
}

type transport interface {
	http.RoundTripper
	CloseIdleConnections()
}

func newAPI(base, token string, log hclog.Logger) (*api, error) {
	a := &api{url: base, token: token, transport: httpcall.NewTransport()}
	b, err := bot.New(token,
		bot.WithSkipGetMe(),
		bot.WithServerURL(base),
		bot.WithHTTPClient(httpcall.Timeout, a),
		bot.WithErrorsHandler(func(err error) { log.Debug("Telegram client", "error", a.redact(err)) }),
	)
	if err != nil {
		return nil, fmt.Errorf("create Telegram client: %s", a.redact(err))
	}
	a.bot = b
	return a, nil
}

func (a *api) close() { a.transport.CloseIdleConnections() }

// redact returns the text of an error without the token.
func (a *api) redact(err error) string {
	text := strings.ReplaceAll(err.Error(), a.token, "<token>")
	return strings.ReplaceAll(text, url.PathEscape(a.token), "<token>")
}

// Do sends a request and reads the whole response. Its errors are of type *httpcall.Error
// and do not contain the URL.
func (a *api) Do(req *http.Request) (*http.Response, error) {
	if req.Body != nil && req.GetBody == nil {
		body, err := io.ReadAll(req.Body)
		_ = req.Body.Close()
		if err != nil {
			return nil, &httpcall.Error{Err: fmt.Errorf("encode request: %w", err)}
		}
		req.ContentLength = int64(len(body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		req.Body, _ = req.GetBody()
	}
	resp, answer, err := httpcall.Do(a.transport, req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= http.StatusInternalServerError || !bytes.HasPrefix(bytes.TrimSpace(answer), []byte("{")) {
		return nil, &httpcall.Error{Status: resp.StatusCode, Sent: resp.StatusCode == http.StatusGatewayTimeout}
	}
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	return resp, nil
}

type pollRequest struct {
	Offset  int64    `json:"offset,omitempty"`
	Limit   int      `json:"limit,omitempty"`
	Timeout int      `json:"timeout"`
	Allowed []string `json:"allowed_updates"`
}

var allowedUpdates = []string{"message", "edited_message", "callback_query", "message_reaction"}

// getUpdates waits for updates. A positive offset confirms those below it.
func (a *api) getUpdates(ctx context.Context, offset int64, wait time.Duration) ([]json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, wait+pollGrace)
	defer cancel()
	body, err := json.Marshal(pollRequest{
		Offset: offset, Limit: pollLimit, Timeout: int(wait / time.Second), Allowed: allowedUpdates,
	})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+"/bot"+a.token+"/getUpdates", bytes.NewReader(body))
	if err != nil {
		return nil, &httpcall.Error{Err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := a.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	result, err := decodeAnswer("getUpdates", resp)
	if err != nil {
		return nil, err
	}
	var updates []json.RawMessage
	if err := json.Unmarshal(result, &updates); err != nil {
		return nil, &httpcall.Error{Sent: true, Err: fmt.Errorf("decode response of getUpdates: %w", err)}
	}
	return updates, nil
}

// getMe returns the bot's user.
func (a *api) getMe(ctx context.Context) (*models.User, error) {
	ctx, cancel := context.WithTimeout(ctx, httpcall.Timeout)
	defer cancel()
	return a.bot.GetMe(ctx)
}
