package chat

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// Kernel is the part of *sdk.Kernel that the chat uses.
type Kernel interface {
	Commit(ctx context.Context, effects ...sdk.Effect) ([]*busv1.EffectResult, error)
	Get(ctx context.Context, key string) (sdk.Value, error)
	Page(ctx context.Context, prefix, after string, limit int) (page []sdk.Value, more bool, err error)
	PutBlob(ctx context.Context, from io.Reader) (sdk.Blob, error)
	GetBlob(ctx context.Context, name string, to io.Writer) (sdk.Blob, error)
	Draining() context.Context
	Log() hclog.Logger
}

// Chat implements Conversations, Files, sdk.Channel and sdk.Drafter. It keeps everything in
// the extension's own store, so there is one for each extension. Start comes first; until
// then, and after Stop, its methods fail with contract.ErrUnavailable.
type Chat struct {
	now func() time.Time

	mu     sync.Mutex
	kernel Kernel
	people map[string]*person // by user
	work   sync.WaitGroup     // purges
}

var (
	_ Conversations = (*Chat)(nil)
	_ Files         = (*Chat)(nil)
	_ sdk.Channel   = (*Chat)(nil)
	_ sdk.Drafter   = (*Chat)(nil)
)

// New returns a chat; now is the clock.
func New(now func() time.Time) *Chat { return &Chat{now: now} }

// Start gives the chat its kernel.
func (c *Chat) Start(k Kernel) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kernel, c.people = k, map[string]*person{}
}

// Stop returns when the chat does nothing more by itself. The kernel is draining.
func (c *Chat) Stop() {
	c.mu.Lock()
	c.people = nil
	c.mu.Unlock()
	c.work.Wait()
}

// person is the conversations of one user.
type person struct {
	chat *Chat
	k    Kernel
	user string

	loading       sync.Mutex
	mu            sync.Mutex
	conversations map[string]*conversation // nil: not loaded yet
	watchers      map[*watcher]struct{}
}

// conversation is one conversation. Who writes to it holds writing until the commit has
// ended, so that lines have their numbers in the order of their commits.
type conversation struct {
	*person
	name string

	writing sync.Mutex
	stale   bool // whether the last commit happened is unknown; under writing
	// events are the events of lines that are stored without; under writing.
	events []Line

	mu        sync.Mutex
	head      head
	tail      []Line // the newest lines, while someone follows
	drafts    map[string]Draft
	ended     []string // ids of the latest drafts that ended
	followers map[*follower]struct{}
}

// head is what is stored of a conversation besides its lines.
type head struct {
	First   int64     `json:"first"` // lines before it are deleted
	Last    int64     `json:"last"`  // number of the newest line, also after it was deleted
	Read    int64     `json:"read"`
	Unread  int       `json:"unread,omitempty"`
	Title   string    `json:"title,omitempty"`
	Preview Line      `json:"preview"`
	Updated time.Time `json:"updated"`
	Purged  int64     `json:"purged,omitempty"` // lines before it are out of the store
}

// exists reports whether the conversation has lines.
func (h head) exists() bool { return h.Last > 0 && h.First <= h.Last }

// errClosed is the error of an extension that has not started, or is ending.
var errClosed = failf(contract.ErrUnavailable, "the chat is starting or ending: try again in a moment")

// of returns a user's conversations; they are loaded at their first use.
func (c *Chat) of(ctx context.Context, user string) (*person, error) {
	c.mu.Lock()
	if c.people == nil {
		c.mu.Unlock()
		return nil, errClosed
	}
	p := c.people[user]
	if p == nil {
		p = &person{chat: c, k: c.kernel, user: user, watchers: map[*watcher]struct{}{}}
		c.people[user] = p
	}
	c.mu.Unlock()
	return p, p.load(ctx)
}

// tombstones is how long the number of the last line of a deleted conversation is known.
const tombstones = 30 * 24 * time.Hour

func (p *person) load(ctx context.Context) error {
	p.loading.Lock()
	defer p.loading.Unlock()
	p.mu.Lock()
	loaded := p.conversations != nil
	p.mu.Unlock()
	if loaded {
		return nil
	}
	all := map[string]*conversation{}
	var outdated sdk.Effects
	prefix := headKey(p.user, "")
	for after, more := "", true; more; {
		var page []sdk.Value
		var err error
		if page, more, err = p.k.Page(ctx, prefix, after, 0); err != nil {
			return err
		}
		for _, v := range page {
			after = v.Key
			var h head
			if err := v.Decode(&h); err != nil {
				return err
			}
			if !h.exists() && h.Purged == h.First && p.chat.now().Sub(h.Updated) > tombstones &&
				len(outdated) < purgeAtOnce {
				outdated = append(outdated, sdk.Delete(v.Key))
				continue
			}
			name := unescape(v.Key[len(prefix):])
			all[name] = p.conversation(name, h)
		}
	}
	if len(outdated) > 0 {
		if _, err := p.k.Commit(ctx, outdated...); err != nil {
			return err
		}
	}
	p.mu.Lock()
	p.conversations = all
	p.mu.Unlock()
	for _, c := range all {
		c.purge()
	}
	return nil
}

func (p *person) conversation(name string, h head) *conversation {
	return &conversation{
		person: p, name: name, head: h, drafts: map[string]Draft{}, followers: map[*follower]struct{}{},
	}
}

// conversation returns a conversation, which need not have lines yet.
func (c *Chat) conversation(ctx context.Context, user, name string) (*conversation, error) {
	if user == "" {
		return nil, failf(contract.ErrDenied, "you are not logged in")
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	p, err := c.of(ctx, user)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	found := p.conversations[name]
	if found == nil {
		found = p.conversation(name, head{First: 1, Purged: 1})
		p.conversations[name] = found
	}
	return found, nil
}
