package link

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/ownuser"
)

// retryEvery is how often a relay looks for the owner while it has none.
const retryEvery = 250 * time.Millisecond

// ErrNoOwner means that no node owns the cell.
var ErrNoOwner = errors.New("it has no owner now")

// Locate returns the name and the address of the owner of a cell; empty: not known. An error
// of class ErrNoOwner may say why there is none.
type Locate func(ctx context.Context) (node, address string, err error)

// Relaying describes a relay.
type Relaying struct {
	Cell   string
	Locate Locate
	Ports  []Port
	// Control names the port that speaks gRPC: while no owner can be reached, each of its
	// calls is answered with the reason.
	Control string
}

// Relay is a standby's stand-in for the owner of a cell.
type Relay struct {
	link *Link
	Relaying
	end     context.CancelFunc
	running sync.WaitGroup
	refuse  *grpc.Server
	refused chan net.Conn

	mu      sync.Mutex
	owner   *session // nil: none can be reached, because of why
	why     string
	written map[string]string // tokens in their files
}

// session is the time in which one owner can be reached.
type session struct {
	client *http.Client
	node   string
	over   context.Context
}

// Relay serves the ports of a cell on this machine until Close. A nil Link relays
// nothing, and says why.
func (l *Link) Relay(r Relaying) (*Relay, error) {
	ctx, end := context.WithCancel(context.Background())
	x := &Relay{
		link: l, Relaying: r, end: end, refused: make(chan net.Conn), written: map[string]string{},
		why: "it has not reached the owner yet",
	}
	x.refuse = grpc.NewServer(grpc.Creds(ownuser.Credentials()), grpc.UnknownServiceHandler(x.refusal))
	x.offerTokens()
	listeners := map[string]net.Listener{}
	for _, p := range r.Ports {
		listener, err := x.listen(p)
		if err != nil && p.Spare {
			continue
		}
		if err != nil {
			end()
			for _, opened := range listeners {
				_ = opened.Close()
			}
			return nil, fmt.Errorf("relay %s of the cell %s: %w", p.Name, r.Cell, err)
		}
		listeners[p.Name] = listener
	}
	for name, listener := range listeners {
		context.AfterFunc(ctx, func() { _ = listener.Close() })
		x.running.Go(func() { x.accept(ctx, name, listener) })
	}
	x.running.Go(func() { _ = x.refuse.Serve(refusing{x.refused, ctx}) })
	x.running.Go(func() { x.follow(ctx) })
	return x, nil
}

// Close ends the relay with all its connections. Its sockets are free then.
func (x *Relay) Close() {
	x.end()
	x.refuse.Stop()
	x.running.Wait()
}

// Owner returns the owner that can be reached now, or why none can.
func (x *Relay) Owner() (node, why string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.owner != nil {
		return x.owner.node, ""
	}
	return "", x.why
}

// sendTime bounds the sending of an edit.
const sendTime = 10 * time.Second

// Send sends an edit of a shared file to the owner, and returns its answer. An error of
// type *Refused is one, too.
func (x *Relay) Send(edit []byte) (answer []byte, err error) {
	x.mu.Lock()
	owner, why := x.owner, x.why
	x.mu.Unlock()
	if owner == nil {
		return nil, errors.New(why)
	}
	ctx, cancel := context.WithTimeout(owner.over, sendTime)
	defer cancel()
	got, err := do(ctx, owner.client, http.MethodPut, url.PathEscape(x.Cell), "/files", bytes.NewReader(edit),
		http.StatusOK)
	if err != nil {
		return nil, plain(err)
	}
	defer got.Body.Close()
	return io.ReadAll(io.LimitReader(got.Body, 1<<10))
}

func (x *Relay) listen(p Port) (net.Listener, error) {
	if p.Network != "unix" {
		return net.Listen(p.Network, p.Address) //nolint:noctx // making a socket does not wait
	}
	l, err := ownuser.ListenAt(p.Address)
	if err != nil {
		return nil, err
	}
	return ownuser.Listen(l, nil), nil
}

func (x *Relay) accept(ctx context.Context, port string, l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		if own, ok := c.(*ownuser.Conn); ok {
			own.Authenticated()
		}
		x.running.Go(func() { x.connect(ctx, port, c) })
	}
}

// connect connects a local program with the owner.
func (x *Relay) connect(ctx context.Context, port string, c net.Conn) {
	x.mu.Lock()
	owner := x.owner
	x.mu.Unlock()
	if owner != nil {
		answer, err := do(owner.over, owner.client, http.MethodPost, url.PathEscape(x.Cell), "/ports/"+port,
			http.NoBody, http.StatusSwitchingProtocols)
		if err == nil {
			stream, duplex := answer.Body.(io.ReadWriteCloser)
			if duplex {
				join(owner.over, c, stream)
				return
			}
			_ = answer.Body.Close()
		}
	}
	if port != x.Control {
		_ = c.Close()
		return
	}
	select {
	case x.refused <- c: // the server for it closes it
	case <-ctx.Done():
		_ = c.Close()
	}
}

// refusal answers a call that can't reach the owner.
func (x *Relay) refusal(any, grpc.ServerStream) error {
	_, why := x.Owner()
	if why == "" {
		why = "the owner has just changed"
	}
	return contract.ToStatus(fmt.Errorf("%w: this machine is a standby of the cell %s, and %s; try again, or use the "+
		"machine that owns the cell", contract.ErrUnavailable, x.Cell, why))
}

// refusing is a listener of connections that are refused.
type refusing struct {
	conns chan net.Conn
	ctx   context.Context //nolint:containedctx // it lives as long as the listener
}

// Accept implements net.Listener.
func (r refusing) Accept() (net.Conn, error) {
	select {
	case c := <-r.conns:
		return c, nil
	case <-r.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (refusing) Close() error { return nil }

// Addr implements net.Listener.
func (refusing) Addr() net.Addr { return &net.UnixAddr{Name: "refused", Net: "unix"} }

// follow keeps the owner and its tokens up to date.
func (x *Relay) follow(ctx context.Context) {
	for ctx.Err() == nil {
		err := x.session(ctx)
		x.mu.Lock()
		x.owner = nil
		if err != nil {
			x.why = err.Error()
		}
		x.mu.Unlock()
		select {
		case <-time.After(retryEvery):
		case <-ctx.Done():
		}
	}
}

// session reaches the owner, and returns when it can't be reached any more.
func (x *Relay) session(ctx context.Context) error {
	locating, done := context.WithTimeout(ctx, dialTime)
	node, address, err := x.Locate(locating)
	done()
	switch {
	case errors.Is(err, ErrNoOwner):
		return err
	case err != nil:
		return fmt.Errorf("its owner is not known: %w", err)
	case node == "":
		return ErrNoOwner
	case x.link == nil:
		return fmt.Errorf("%s owns it; this machine lacks the key of the cluster, so it can't reach that: copy the key "+
			"with `switchboard cluster key show` there and `switchboard cluster key set` here", node)
	case address == "":
		return fmt.Errorf("%s owns it, which can't be reached from other machines: set listen in its cluster.yaml", node)
	case node == x.link.options.Node:
		return errors.New("this machine is about to own it")
	}
	over, end := context.WithCancel(ctx)
	defer end()
	silent := time.AfterFunc(silentTime, end)
	defer silent.Stop()
	client := x.link.client(node, address)
	answer, err := do(over, client, http.MethodGet, url.PathEscape(x.Cell), "/tokens", http.NoBody, http.StatusOK)
	if err != nil {
		return fmt.Errorf("%s owns it, which can't be reached at %s: %w", node, address, plain(err))
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		silent.Reset(silentTime)
		tokens := map[string]string{}
		if err := json.Unmarshal(lines.Bytes(), &tokens); err != nil {
			return fmt.Errorf("%s owns it, which sends something else than tokens: %w", node, err)
		}
		if err := x.keep(tokens); err != nil {
			return fmt.Errorf("the tokens of %s, its owner, can't be kept: %w", node, err)
		}
		x.mu.Lock()
		if x.owner == nil {
			x.owner = &session{client, node, over}
		}
		x.mu.Unlock()
	}
	return fmt.Errorf("the connection to %s, its owner, has ended", node)
}

// plain leaves out the request that net/http names.
func plain(err error) error {
	if unknown := (x509.UnknownAuthorityError{}); errors.As(err, &unknown) {
		return errors.New("it has another cluster key than this machine: copy the right one with `switchboard cluster key " +
			"show` and `switchboard cluster key set`")
	}
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

// keep writes the owner's tokens to the files where programs look for them.
func (x *Relay) keep(tokens map[string]string) error {
	for _, p := range x.Ports {
		token := tokens[p.Name]
		if p.Token == "" || token == "" || x.written[p.Name] == token || strings.ContainsAny(token, "\r\n\x00") {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(p.Token), 0o700); err != nil {
			return err
		}
		if err := replace(p.Token, token+"\n"); err != nil {
			return err
		}
		x.written[p.Name] = token
	}
	return nil
}

// offerTokens makes the token files that are missing, so that programs ask, and are told why
// no owner can be reached.
func (x *Relay) offerTokens() {
	for _, p := range x.Ports {
		if _, err := os.Lstat(p.Token); p.Token != "" && errors.Is(err, fs.ErrNotExist) {
			_ = replace(p.Token, "\n") // without it they only name the file
		}
	}
}

// replace writes a file that only this user can read, in one step.
func replace(file, text string) error {
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
