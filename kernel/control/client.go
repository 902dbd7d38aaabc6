package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"syscall"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/home/backup"
	"github.com/switchboard-run/switchboard/kernel/trace"
)

// ErrNotRunning says that no kernel runs on the home.
var ErrNotRunning = errors.New("no kernel is running")

// Client is a kernel in another process.
type Client struct {
	socket, tokenFile string
	http              *http.Client
}

var _ Kernel = (*Client)(nil)

// Dial returns the kernel behind a socket; the error wraps ErrNotRunning if
// there is none.
func Dial(ctx context.Context, socket, tokenFile string) (*Client, error) {
	var d net.Dialer
	dial := func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "unix", socket) }
	conn, err := dial(ctx)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
			return nil, ErrNotRunning
		}
		return nil, fmt.Errorf("asking the kernel at %s: %w", socket, err)
	}
	_ = conn.Close()
	return &Client{socket: socket, tokenFile: tokenFile, http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
	}}}, nil
}

// Close releases the connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func (c *Client) send(ctx context.Context, method, path string, query url.Values, body any) (io.ReadCloser, error) {
	token, err := readToken(c.tokenFile)
	if err != nil {
		return nil, err
	}
	var content io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+host+path+"?"+query.Encode(), content)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(r)
	if err != nil {
		if where, ok := errors.AsType[*url.Error](err); ok {
			err = where.Err // without the made-up address
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: the kernel did not answer: %w", contract.ErrGone, err)
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	defer response.Body.Close()
	var f failure
	if err := json.NewDecoder(response.Body).Decode(&f); err != nil || f.Message == "" {
		return nil, fmt.Errorf("the kernel answered %s", response.Status)
	}
	return nil, f.err()
}

func (f *failure) err() error {
	return contract.FromProto(&busv1.Error{Code: int32(f.Code), Message: f.Message})
}

// ask makes one request and reads its answer.
func ask[T any](ctx context.Context, c *Client, method, path string, query url.Values, body any) (v T, err error) {
	answer, err := c.send(ctx, method, path, query, body)
	if err != nil {
		return v, err
	}
	defer answer.Close()
	if err := json.NewDecoder(answer).Decode(&v); err != nil {
		return v, fmt.Errorf("reading the kernel's answer: %w", err)
	}
	return v, nil
}

// Status implements Kernel.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return ask[Status](ctx, c, http.MethodGet, "/v1/status", nil, nil)
}

// Extensions implements Kernel.
func (c *Client) Extensions(ctx context.Context) ([]Extension, error) {
	return ask[[]Extension](ctx, c, http.MethodGet, "/v1/extensions", nil, nil)
}

// RestartExtension implements Kernel.
func (c *Client) RestartExtension(ctx context.Context, id string) (Extension, error) {
	return ask[Extension](ctx, c, http.MethodPost, "/v1/extensions/"+url.PathEscape(id)+"/restart", nil, nil)
}

// Channels implements Kernel.
func (c *Client) Channels(ctx context.Context) ([]Channel, error) {
	return ask[[]Channel](ctx, c, http.MethodGet, "/v1/channels", nil, nil)
}

// Send implements Kernel.
func (c *Client) Send(ctx context.Context, channel, text string) (Sent, error) {
	return ask[Sent](ctx, c, http.MethodPost, "/v1/channels/"+url.PathEscape(channel)+"/send", nil, sendBody{text})
}

// People implements Kernel.
func (c *Client) People(ctx context.Context) (People, error) {
	return ask[People](ctx, c, http.MethodGet, "/v1/people", nil, nil)
}

// Approve implements Kernel.
func (c *Client) Approve(ctx context.Context, code string) (Person, error) {
	return ask[Person](ctx, c, http.MethodPost, "/v1/people/approve", nil, approveBody{code})
}

// Revoke implements Kernel.
func (c *Client) Revoke(ctx context.Context, channel, user string) error {
	_, err := ask[struct{}](ctx, c, http.MethodPost, "/v1/people/revoke", nil, revokeBody{channel, user})
	return err
}

// Agents implements Kernel.
func (c *Client) Agents(ctx context.Context) ([]Agent, error) {
	return ask[[]Agent](ctx, c, http.MethodGet, "/v1/agents", nil, nil)
}

// Sessions implements Kernel.
func (c *Client) Sessions(ctx context.Context, q SessionQuery) ([]Session, error) {
	return ask[[]Session](ctx, c, http.MethodGet, "/v1/sessions", url.Values{"agent": {q.Agent}, "limit": {strconv.Itoa(q.Limit)}}, nil)
}

// Session implements Kernel.
func (c *Client) Session(ctx context.Context, id string) (Session, error) {
	return ask[Session](ctx, c, http.MethodGet, "/v1/sessions/"+url.PathEscape(id), nil, nil)
}

// Transcript implements Kernel.
func (c *Client) Transcript(ctx context.Context, id string) (Transcript, error) {
	return ask[Transcript](ctx, c, http.MethodGet, "/v1/sessions/"+url.PathEscape(id)+"/transcript", nil, nil)
}

// DeleteSession implements Kernel.
func (c *Client) DeleteSession(ctx context.Context, id string) error {
	_, err := ask[struct{}](ctx, c, http.MethodDelete, "/v1/sessions/"+url.PathEscape(id), nil, nil)
	return err
}

// Usage implements Kernel.
func (c *Client) Usage(ctx context.Context, by string, days int) ([]Usage, error) {
	return ask[[]Usage](ctx, c, http.MethodGet, "/v1/usage", url.Values{"by": {by}, "days": {strconv.Itoa(days)}}, nil)
}

// Backup implements Kernel.
func (c *Client) Backup(ctx context.Context, file string, secrets bool) (backup.Info, error) {
	return ask[backup.Info](ctx, c, http.MethodPost, "/v1/backup", nil, backupBody{file, secrets})
}

// CallTool implements Kernel.
func (c *Client) CallTool(ctx context.Context, name string, arguments json.RawMessage) (ToolResult, error) {
	return ask[ToolResult](ctx, c, http.MethodPost, "/v1/tools/"+name, nil, arguments)
}

// Events implements Kernel.
func (c *Client) Events(ctx context.Context, q EventQuery) ([]Event, error) {
	return ask[[]Event](ctx, c, http.MethodGet, "/v1/events", q.values(), nil)
}

func (q EventQuery) values() url.Values {
	return url.Values{"topic": {q.Topic}, "limit": {strconv.Itoa(q.Limit)}}
}

// Follow implements Kernel.
func (c *Client) Follow(ctx context.Context, q EventQuery, each func(Event) error) error {
	stream, err := c.send(ctx, http.MethodGet, "/v1/follow", q.values(), nil)
	if err != nil {
		return err
	}
	defer stream.Close()
	decoder := json.NewDecoder(stream)
	for {
		var l line
		switch err := decoder.Decode(&l); {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return fmt.Errorf("%w: the kernel has stopped", contract.ErrGone)
		case err != nil:
			return fmt.Errorf("reading the kernel's answer: %w", err)
		case l.Failure != nil:
			return l.Failure.err()
		case l.Event == nil:
			continue
		}
		if err := each(*l.Event); err != nil {
			return err
		}
	}
}

// Event implements Kernel.
func (c *Client) Event(ctx context.Context, id string) (Event, error) {
	return ask[Event](ctx, c, http.MethodGet, "/v1/events/"+url.PathEscape(id), nil, nil)
}

// DeadLetters implements Kernel.
func (c *Client) DeadLetters(ctx context.Context, limit int) ([]DeadLetter, error) {
	return ask[[]DeadLetter](ctx, c, http.MethodGet, "/v1/dead", url.Values{"limit": {strconv.Itoa(limit)}}, nil)
}

// Resubmit implements Kernel.
func (c *Client) Resubmit(ctx context.Context, id string) (int, error) {
	r, err := ask[resubmitted](ctx, c, http.MethodPost, "/v1/events/"+url.PathEscape(id)+"/resubmit", nil, nil)
	return r.Deliveries, err
}

// Trace implements Kernel.
func (c *Client) Trace(ctx context.Context, id string) (*trace.Trace, error) {
	return ask[*trace.Trace](ctx, c, http.MethodGet, "/v1/trace/"+url.PathEscape(id), nil, nil)
}

// Reached implements Kernel.
func (c *Client) Reached(ctx context.Context, events []trace.Ref) ([]trace.Reach, error) {
	return ask[[]trace.Reach](ctx, c, http.MethodPost, "/v1/reached", nil, events)
}
