package door

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Still reports whether a visitor would be let in now as the one that they were. A stream asks
// it from time to time, because its request may have begun long ago.
func (d *Door) Still(ctx context.Context, v Visitor) bool {
	of := identity{v.User, v.Account}
	valid := false
	if v.Token != "" {
		tokens, err := d.Tokens(ctx)
		valid = err == nil && slices.ContainsFunc(tokens, func(t Token) bool {
			return t.Name == v.Token && t.Account == of && slices.Equal(t.Scopes, v.Scopes)
		})
	} else if err := d.eachLogin(ctx, func(_ string, l Login) {
		valid = valid || l.ID == v.Login && l.Account == of
	}); err != nil {
		return false
	}
	now, err := d.people.visitor(ctx, of)
	return valid && err == nil && now.Role == v.Role && now.Person == v.Person
}

// lasts reports whether the answers of a path may last.
func lasts(path string) bool { return strings.HasPrefix(path, "/live/") || path == MCPPath }

// checkEvery is how often the visitor of a stream is checked.
const checkEvery = 15 * time.Second

// watched returns a context that ends when a visitor would no longer be let in.
func (d *Door) watched(ctx context.Context, v Visitor) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		ticker := time.NewTicker(checkEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if !d.Still(ctx, v) {
					return
				}
			}
		}
	}()
	return ctx, cancel
}
