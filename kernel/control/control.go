// Package control is how the command line talks to a running kernel: HTTP and
// JSON over a unix socket in the home's runtime directory.
//
// # Who may use it
//
// Whoever can open the socket is the owner. It has mode 0600 in a directory of
// mode 0700, the user of each connection is checked, and every request carries
// the token that the kernel wrote to a file of mode 0600 in the home when it
// started. Requests of a web page are refused: any with an Origin or another
// mark of a browser, and any for another host than the one of this package.
//
// # Promises
//
// What a request changes is one commit of the kernel, durable when the answer
// comes. A request that ends early may still have had its effect. Follow loses
// no event while it lasts and repeats none; it ends with the kernel. Answers
// only gain fields.
//
// Client and the kernel implement the same interface, so that the command line
// works the same inside of the kernel's process and beside it.
package control

import (
	"context"
	"encoding/json"

	"github.com/switchboard-run/switchboard/home/backup"
	"github.com/switchboard-run/switchboard/kernel/trace"
)

const (
	// SocketName is the socket in the runtime directory.
	SocketName = "control.sock"
	// TokenName is the file in the home that holds the token.
	TokenName = "control.token"
	// MaxReached is how many events one question to Reached may name.
	MaxReached = 100
	// host is the only host that requests may name.
	host = "switchboard"
)

// Kernel is what a person can ask of a kernel. All methods are safe for
// concurrent use; errors wrap the sentinels of package contract.
type Kernel interface {
	Status(ctx context.Context) (Status, error)

	Extensions(ctx context.Context) ([]Extension, error)
	// RestartExtension starts an extension anew, a failed one too, and waits a
	// moment for it to settle.
	RestartExtension(ctx context.Context, id string) (Extension, error)

	Channels(ctx context.Context) ([]Channel, error)
	// Send sends a text to the default recipient of a channel and waits up to
	// ten seconds for the platform's word.
	Send(ctx context.Context, channel, text string) (Sent, error)

	People(ctx context.Context) (People, error)
	Approve(ctx context.Context, code string) (Person, error)
	Revoke(ctx context.Context, channel, user string) error

	Agents(ctx context.Context) ([]Agent, error)

	Sessions(ctx context.Context, q SessionQuery) ([]Session, error)
	Session(ctx context.Context, id string) (Session, error)
	// Transcript is the session with its whole history.
	Transcript(ctx context.Context, id string) (Transcript, error)
	// DeleteSession ends what runs in the session and removes it with its
	// history.
	DeleteSession(ctx context.Context, id string) error

	// Usage is what models cost on the last days, by day, agent, model or session.
	Usage(ctx context.Context, by string, days int) ([]Usage, error)

	// Backup makes a backup; without a name, one in the home. The file must not
	// exist yet, and its name must not depend on a directory.
	Backup(ctx context.Context, file string, secrets bool) (backup.Info, error)

	// CallTool runs a tool, <extension>/<tool>, outside of a turn. Its effects
	// are one commit, made as that extension.
	CallTool(ctx context.Context, name string, arguments json.RawMessage) (ToolResult, error)

	// Events returns the newest events of the query, the oldest of them first.
	Events(ctx context.Context, q EventQuery) ([]Event, error)
	// Follow is Events, and then every further one, until ctx or the kernel ends.
	Follow(ctx context.Context, q EventQuery, each func(Event) error) error
	Event(ctx context.Context, id string) (Event, error)
	// DeadLetters returns the newest ones, the newest first.
	DeadLetters(ctx context.Context, limit int) ([]DeadLetter, error)
	// Resubmit queues the dead deliveries of an event again and says how many.
	Resubmit(ctx context.Context, id string) (int, error)
	// Trace follows a message from its root; id is of an event, or of a message
	// as its platform knows it.
	Trace(ctx context.Context, id string) (*trace.Trace, error)
	// Reached says of each event, at most MaxReached, how far it came.
	Reached(ctx context.Context, events []trace.Ref) ([]trace.Reach, error)
}
