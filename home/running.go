package home

import (
	"context"
	"maps"
	"sync"

	"github.com/switchboard-run/switchboard/kernel/supervisor"
)

// running knows the processes of extensions until they have ended.
type running struct {
	mu  sync.Mutex
	all map[string]*supervisor.Process // by extension
}

// noted launches processes and remembers them.
func (r *running) noted(launch supervisor.Launcher) supervisor.Launcher {
	return func(ctx context.Context, l supervisor.Launch) (*supervisor.Process, error) {
		p, err := launch(ctx, l)
		if err != nil {
			return p, err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.all == nil {
			r.all = map[string]*supervisor.Process{}
		}
		for _, id := range l.IDs {
			r.all[id] = p
		}
		context.AfterFunc(p.Context, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			maps.DeleteFunc(r.all, func(_ string, has *supervisor.Process) bool { return has == p })
		})
		return p, nil
	}
}

// ended waits until the process of an extension has ended, or the context.
func (r *running) ended(ctx context.Context, id string) {
	r.mu.Lock()
	p := r.all[id]
	r.mu.Unlock()
	if p == nil {
		return
	}
	select {
	case <-p.Context.Done():
	case <-ctx.Done():
	}
}
