// Package remote connects MCP servers over streamable HTTP, and logs in to those that want
// it (OAuth).
//
// # Promises
//
//   - Headers of the configuration and tokens are sent to the configured scheme, host and
//     port, and nowhere else. A redirect elsewhere is refused. They are never logged.
//   - A name on the internet does not lead to this machine or a link-local address, however
//     it resolves. Addresses that a server names for a login must be https and public, unless
//     the server itself is configured at a loopback or private address.
//   - One message has at most 16 MiB, and a stream brings at most 64 MiB a minute. Beyond
//     that its connection ends.
//   - Ending a link ends its requests, within the grace, also if the server is dead.
//   - Tokens are kept in a file of the owner alone, for the address that they are for. A
//     token that is refused is refreshed once; if that fails, the owner is told once.
package remote

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Link is the transport of one session with a server. Requests that fail for a moment end
// their calls only.
type Link struct {
	transport *mcp.StreamableClientTransport
	cancel    context.CancelFunc
	done      chan struct{}
	once      sync.Once
}

// Open returns a link to a server. Login is nil if the headers authorize the requests.
func Open(address string, headers map[string]string, login *Login) (*Link, error) {
	u, err := parse(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:gosec // End cancels it
	l := &Link{cancel: cancel, done: make(chan struct{})}
	l.transport = &mcp.StreamableClientTransport{
		Endpoint: u.String(), HTTPClient: serverClient(u, headers, ctx), MaxEventSize: maxMessage,
	}
	if login != nil {
		l.transport.OAuthHandler = login
	}
	return l, nil
}

func parse(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the address: %w", err)
	case u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return nil, fmt.Errorf("the address %s is neither https:// nor http://", u.Redacted())
	case u.User != nil:
		return nil, fmt.Errorf("the address %s has a password in it: use \"headers\"", u.Redacted())
	}
	return u, nil
}

// Connect implements mcp.Transport.
func (l *Link) Connect(ctx context.Context) (mcp.Connection, error) { return l.transport.Connect(ctx) }

// Done is closed when the link was ended.
func (l *Link) Done() <-chan struct{} { return l.done }

// Reason is empty: only errors of requests say what is wrong with a server elsewhere.
func (*Link) Reason() string { return "" }

// End ends the link: its requests may take the grace until they are cut off.
func (l *Link) End(grace time.Duration, _ string) {
	l.once.Do(func() {
		close(l.done)
		time.AfterFunc(grace, l.cancel)
	})
}
