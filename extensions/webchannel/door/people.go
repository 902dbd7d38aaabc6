package door

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
)

// peopleKept is how long roles and accounts are used before they are read again.
const peopleKept = 3 * time.Second

// people knows who has which account now.
type people struct {
	read adminv1.ReadClient
	now  func() time.Time

	mu  sync.Mutex
	at  time.Time
	all []*adminv1.Person
}

func (p *people) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = time.Time{}
}

func (p *people) list(ctx context.Context) ([]*adminv1.Person, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.now(); p.at.IsZero() || now.Sub(p.at) > peopleKept {
		found, err := p.read.People(ctx, &adminv1.PeopleRequest{})
		if err != nil {
			return nil, err
		}
		p.at, p.all = now, found.GetPeople()
	}
	return p.all, nil
}

// byID returns a person by id, by that of an account or, if that is unique, by name; the
// owner is there also without an account.
func (p *people) byID(ctx context.Context, id string) (*adminv1.Person, error) {
	all, err := p.list(ctx)
	if err != nil {
		return nil, err
	}
	var named []*adminv1.Person
	for _, one := range all {
		has := func(a *adminv1.Account) bool { return a.GetId() == id }
		if one.GetId() == id || slices.ContainsFunc(one.GetAccounts(), has) {
			return one, nil
		}
		if strings.EqualFold(one.GetName(), id) {
			named = append(named, one)
		}
	}
	switch {
	case len(named) == 1:
		return named[0], nil
	case id == "" || id == contract.Owner:
		return &adminv1.Person{Id: contract.Owner, Role: contract.Owner}, nil
	case len(named) > 1:
		return nil, fmt.Errorf("%w: several people are called %q: give the id, which `switchboard people list` shows",
			contract.ErrInvalid, id)
	}
	return nil, fmt.Errorf("%w: there is no person %q; `switchboard people list` shows who there is",
		contract.ErrNotFound, id)
}

// visitor returns the visitor of an account, as the person is now. An account that was
// revoked, or whose person is blocked, has none.
func (p *people) visitor(ctx context.Context, of identity) (Visitor, error) {
	all, err := p.list(ctx)
	if err != nil {
		return Visitor{}, err
	}
	for _, one := range all {
		for _, a := range one.GetAccounts() {
			if a.GetId() != of.Account {
				continue
			}
			if one.GetRole() == "blocked" || a.GetApprovedAtUs() == 0 {
				return Visitor{}, contract.ErrDenied
			}
			return Visitor{
				User: of.User, Account: of.Account, Person: one.GetId(), Name: one.GetName(), Role: one.GetRole(),
			}, nil
		}
	}
	return Visitor{}, contract.ErrDenied
}
