// Package journal is the kernel's one durable store behind a narrow interface:
// events, deliveries, sessions with their history, and every extension's
// key-value store. Each engine passes the suite in package storetest.
//
// # Promises
//
// An update is atomic and durable: once it is reported without an error, it
// survives a crash of the process and the loss of power. Updates are applied one
// after the other, in the order of submission, and an update sees all earlier ones.
// A failed update leaves no trace and does not affect others of its group. Sequence numbers become visible
// in ascending order and are never reused.
//
// The journal knows nothing of topics, grants or routing. Packages bus and session
// decide which changes of a row are valid.
package journal

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract/busv1"
)

var (
	// ErrNewer means that the store was written by a newer version of the program.
	ErrNewer = errors.New("the store was written by a newer version")
	// ErrDamaged means that the store's file cannot be read as one.
	ErrDamaged = errors.New("the store is damaged")
	// ErrClosed means that the store is closed.
	ErrClosed = errors.New("the store is closed")
)

// Classes of failed commits. An outcome that is the engine's, and not the
// update's own, wraps one of them, ErrDamaged or ErrClosed; nothing of the update
// is kept.
var (
	// ErrRefused means that the engine can't write: an I/O error or a read-only disk.
	ErrRefused = errors.New("the store cannot be written")
	// ErrFull means that the disk is full.
	ErrFull = errors.New("the disk is full")
	// ErrStalled means that the engine waits for something else, such as its log, and
	// goes on when that is back.
	ErrStalled = errors.New("the store is waiting")
	// ErrLost means that the store's file is not in its place any more. The engine
	// refuses updates until it is back.
	ErrLost = errors.New("the store's file is gone")
	// ErrFenced means that another process writes to this store. Its owner must stop:
	// nothing that it does can be kept.
	ErrFenced = errors.New("another process writes to this store")
)

// Store is a journal engine. All methods are safe for concurrent use.
type Store interface {
	// Submit queues an update; it waits while too many are queued. The outcome
	// of a store that is closed is ErrClosed, at once.
	Submit(u Update)
	// View reads a consistent state that includes every update whose outcome
	// was reported before.
	View(ctx context.Context, read func(Reader) error) error
	// Backup writes a consistent copy to a file that does not exist yet, and
	// returns when it is durable. One that failed leaves no file.
	Backup(ctx context.Context, path string) error
	// Size is the space in use, in bytes.
	Size() int64
	// Epoch is higher than at every earlier opening of this store: what is numbered
	// from it, such as generations of extensions, is never used twice. At most 2^20
	// numbers belong to an epoch.
	Epoch() int64
	// Damage returns the error that keeps the store from being trusted, of class
	// ErrDamaged, ErrLost or ErrFenced; nil: none was met.
	Damage() error
	// Close finishes what was submitted and releases the store.
	Close() error
}

// LazyDelay is how long a lazy update may wait for company.
const LazyDelay = 20 * time.Millisecond

// Update is one atomic change.
type Update struct {
	// Apply makes the change. No other update is applied meanwhile. It may run
	// more than once: the last run counts. It must not submit.
	Apply func(tx Tx) error
	// Undo, if set, takes back what a run of Apply noted outside of tx, when the
	// run comes to nothing: newest run first, and before anything else is
	// applied.
	Undo func()
	// Done learns the outcome, once, after the update is durable or has failed,
	// in the order of submission. It must neither block nor submit.
	Done func(error)
	// Lazy lets the update wait up to LazyDelay for another one to ride with.
	Lazy bool
}

// Do submits an update and waits for its outcome. When ctx ends first, the
// update may still happen.
func Do(ctx context.Context, s Store, apply func(Tx) error) error {
	done := make(chan error, 1)
	s.Submit(Update{Apply: apply, Done: func(err error) { done <- err }})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Reader reads. A row that does not exist is nil without an error.
type Reader interface {
	Event(seq int64) (*busv1.Event, error)
	EventByDedupe(source, key string) (seq int64, found bool, err error)
	Events(f EventFilter) ([]*busv1.Event, error)
	LastSeq() (int64, error)

	Subscriptions() ([]Subscription, error)
	Delivery(seq, subscription int64) (*Delivery, error)
	Deliveries(f DeliveryFilter) ([]Delivery, error)
	// Pending calls each for every unsettled delivery, ascending by subscription
	// and rank, until it returns false.
	Pending(each func(Delivery) bool) error
	// PendingLane returns unsettled deliveries of one lane after a rank, in
	// order.
	PendingLane(subscription int64, key string, after int64, limit int) ([]Delivery, error)

	KVGet(owner, key string) (KV, error)
	// KVScan returns the keys with the prefix that sort, by their bytes, after
	// after, in order. A limit of 0 is 1000.
	KVScan(owner, prefix, after string, limit int) ([]KV, error)

	Session(id int64) (*Session, error)
	SessionByKey(agent, key string) (*Session, error)
	Sessions(f SessionFilter) ([]Session, error)
	// History returns the newest rows after after whose sizes add up to at most
	// maxBytes (at least one row), oldest first, and whether older ones exist.
	History(session, after int64, maxBytes int64) (rows []*busv1.Entry, truncated bool, err error)
	// HistoryBefore returns at most limit rows, the newest in front of row before
	// (0: of all), oldest first.
	HistoryBefore(session, before int64, limit int) ([]*busv1.Entry, error)
	Turn(id int64) (*Turn, error)
	// TurnsOf counts the turns of a chain, those that have not ended included, and
	// stops at most.
	TurnsOf(chain string, most int) (int, error)
	Call(id int64) (*Call, error)
	OpenCalls(turn int64) ([]Call, error)
	Conversation(id int64) (*Conversation, error)
	ConversationByHandle(handle string) (*Conversation, error)
	ConversationByAddress(channel, address, thread string) (*Conversation, error)

	CommitReceipt(owner, id string) (receipt []byte, found bool, err error)

	Blob(hash string) (*Blob, error)
	// Keeps reports whether a keeper keeps a blob. Without a Key, it asks for any value
	// of the owner.
	Keeps(k Keeper, hash string) (bool, error)
	// KeptBlobs returns at most limit of the blobs that a keeper keeps and whose hashes
	// begin with the prefix, in the order of their hashes.
	KeptBlobs(k Keeper, prefix string, limit int) ([]Blob, error)
	// BlobBytes adds up the sizes of the blobs that an owner stored; of all without one.
	BlobBytes(owner string) (int64, error)
}

// Tx reads and writes inside of an update.
type Tx interface {
	Reader

	// Part applies a part of the update: if it fails, nothing of it is kept, and
	// the rest of the update goes on. The update then fails only if it says so.
	Part(apply func() error) error

	// AppendEvent stores the event and sets its Seq and Id.
	AppendEvent(e *busv1.Event) error
	PutSubscription(s *Subscription) error // sets ID when zero
	DeleteSubscription(id int64) error     // with its unsettled deliveries
	// AddDelivery stores a new one; a Rank of 0 is RankOf its event.
	AddDelivery(d Delivery) error
	UpdateDelivery(d Delivery) error
	// Acknowledge makes an unsettled delivery Done and changes nothing else of it.
	Acknowledge(seq, subscription, startedAt, settledAt int64) error

	// KVPut returns a version that is higher than every one this key ever had,
	// also before it was deleted.
	KVPut(owner, key string, value []byte) (version int64, err error)
	KVDelete(owner, key string) error

	PutSession(s *Session) error // sets ID when zero
	DeleteSession(id int64) error
	// AppendHistory stores rows under the seqs that they carry.
	AppendHistory(session int64, rows []*busv1.Entry) error
	PutTurn(t *Turn) error // sets ID when zero
	PutCall(c *Call) error // sets ID when zero
	DeleteCall(id int64) error
	PutConversation(c *Conversation) error

	PutCommitReceipt(owner, id string, receipt []byte) error

	// HoldBlob stores a blob, unless it is there, and lets owner keep it until a time
	// (Unix microseconds).
	HoldBlob(b Blob, owner string, until int64) error
	// KeepBlobs lets an event, a session or a value keep blobs too, until the keeper is
	// deleted or its value replaced. ErrNoBlob: one of them is not stored.
	KeepBlobs(k Keeper, hashes []string) error
	// SweepBlobs ends the holds that are over and looks at the next limit blobs after a
	// hash, in the order of their hashes. It deletes those that nothing keeps, and returns
	// them and the last one that it looked at; empty: there are no more.
	SweepBlobs(now int64, after string, limit int) (gone []string, last string, err error)
	// Prune removes at most limit events accepted before the time (Unix
	// microseconds), with their deliveries, and as many receipts of commits, and
	// reports whether there may be more. An event with an unsettled delivery stays,
	// and so does one with a delivery that died at deadBefore or later. A call
	// looks at a bounded number of events; the next one continues after them. After
	// a call that returns false, the next one starts from the beginning.
	Prune(before, deadBefore int64, limit int) (more bool, err error)
}

// EventFilter selects events, newest first unless Ascending.
type EventFilter struct {
	After, Before int64 // exclusive seqs; 0: unbounded
	Topic         string
	Correlation   string
	Limit         int // 0: 100
	Ascending     bool
}

// Subscription is what a manifest subscribed to. It is known by (Extension,
// Pattern) and keeps its deliveries over changes of everything else.
type Subscription struct {
	ID        int64
	Extension string
	Pattern   string
	ParkedAt  int64 // Unix microseconds since it was removed or disabled; 0: in force
}

// DeliveryState is the state of a delivery.
type DeliveryState int

// Deliveries go Pending -> InFlight -> Done | Dead. InFlight is stored only
// where losing the knowledge could repeat an effect outside of the kernel.
const (
	Pending DeliveryState = iota
	InFlight
	Done
	Dead
)

func (s DeliveryState) String() string {
	return [...]string{"pending", "in flight", "done", "dead"}[s]
}

// Delivery is one event for one subscription.
type Delivery struct {
	Seq          int64
	Subscription int64
	Key          string // the lane; empty: none
	State        DeliveryState
	Attempts     int   // failures so far
	NotBefore    int64 // Unix microseconds
	// StartedAt is the time of the last attempt, Unix microseconds; while Uncertain,
	// of the first that may have had its effect, 0 if not known.
	StartedAt    int64
	SettledAt    int64 // Unix microseconds
	Uncertain    bool  // an attempt may have had its effect
	Reason       string
	ProviderID   string // from a receipt
	Conversation int64  // from a receipt
	Rank         int64  // place in the lane, unique there
	Resubmitted  int64  // Unix microseconds of the last time; 0: never
}

// RankOf is the place in its lane of a delivery of the event. Between two ranks
// there is room for deliveries that are queued again.
func RankOf(seq int64) int64 { return seq << 20 }

// DeliveryFilter selects deliveries, newest first.
type DeliveryFilter struct {
	Seq          int64 // of one event
	Subscription int64
	States       []DeliveryState
	ProviderID   string // from a receipt; reads all between After and Before
	After        int64
	Before       int64
	Limit        int // 0: 100
}

// KeyRestored is the kernel's key that holds the newest event of the backup that the
// store was restored from, as a decimal number. What answers an event up to that
// one may have been answered before.
const KeyRestored = "restored"

// KV is one key of an extension's store; Version 0 means that it is not there.
type KV struct {
	Key     string
	Value   []byte
	Version int64
}

// Session is one conversation of one agent.
type Session struct {
	ID             int64
	Agent          string
	Key            string
	OutboundKind   int32 // busv1.Outbound_Kind
	OutboundTarget string
	Conversation   int64 // of a chat; 0: none
	Group          bool
	Title          string // for people; empty: none
	Within         int64  // the session in whose conversation it was made; 0: none
	HistorySeq     int64
	Stack          []int64 // turns, the running one last
	CreatedAt      int64   // Unix microseconds
	ActiveAt       int64
	UserAt         int64    // when a turn heard a person last; 0: never
	Chain          string   // the piece of work that its turns are counted for; empty: none
	Idle           []string // extensions to tell when it has nothing to do
}

// SessionFilter selects sessions, most recently active first.
type SessionFilter struct {
	Agent string
	Limit int // 0: 100
}

// Turn is an ordered set of inputs and what became of it.
type Turn struct {
	ID          int64
	Session     int64
	Inputs      []int64 // seqs of the input events
	ReplyTo     string
	Chain       string // for which its turn is counted
	Outcome     string // empty: not ended
	Person      string // whose inputs it answers; empty: no person's
	UsedSend    bool   // a send_to_channel was part of it
	Interrupted int    // how often a newer message has interrupted it
	StartedAt   int64
	EndedAt     int64
}

// CallState is the state of a tool call.
type CallState int

// Calls go Open -> Running -> Finished | Closed; Running is stored only for tools
// that must not be repeated.
const (
	CallOpen CallState = iota
	CallRunning
	CallFinished
	CallClosed
)

func (s CallState) String() string {
	return [...]string{"open", "running", "done", "closed"}[s]
}

// Ended reports whether the call takes no result any more.
func (s CallState) Ended() bool { return s == CallFinished || s == CallClosed }

// Call is one tool call.
type Call struct {
	ID         int64
	Session    int64
	Turn       int64  // 0: Owner made it
	Owner      string // a command's event or an extension; empty: the turn
	Person     string // for whom; empty: no person
	ProviderID string
	Name       string
	Arguments  []byte
	State      CallState
	Result     string // of Finished; of Running a provisional one, or the session that works for the call
	IsError    bool
	StartedAt  int64
	EndedAt    int64
}

// Conversation is a place on a channel. Its handle is all that agents and
// extensions see of it.
type Conversation struct {
	ID        int64
	Handle    string
	Channel   string
	Address   string
	Thread    string
	Group     bool
	Agent     string // chosen with /agent; empty: by the routing
	Model     string // chosen with /model; empty: the agent's
	Epoch     int64  // raised by /new
	CreatedAt int64
}

// EventID is how an event's seq is written.
func EventID(seq int64) string {
	var digits [24]byte
	return string(strconv.AppendInt(append(digits[:0], 'e'), seq, 10))
}

// ParseEventID is the seq of an event's id; 0 if it is none.
func ParseEventID(id string) int64 { return parseID("e", id) }

// SessionID is how a session's id is written; empty for none.
func SessionID(id int64) string {
	if id == 0 {
		return ""
	}
	return "s" + strconv.FormatInt(id, 10)
}

// ParseSessionID is the number of a session's id; 0 if it is none.
func ParseSessionID(id string) int64 { return parseID("s", id) }

// CallID is how a call's id is written.
func CallID(id int64) string { return "c" + strconv.FormatInt(id, 10) }

// ParseCallID is the number of a call's id; 0 if it is none.
func ParseCallID(id string) int64 { return parseID("c", id) }

func parseID(prefix, id string) int64 {
	digits, ok := strings.CutPrefix(id, prefix)
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || n < 0 {
		return 0
	}
	return n
}
