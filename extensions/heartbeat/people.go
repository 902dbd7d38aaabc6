package heartbeat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

// topicCheck is the topic of the check for a person other than the owner.
const topicCheck = ID + ".check"

// check is its payload.
type check struct {
	Account string `json:"account"`
}

// personPrefix begins the keys of what people chose.
const personPrefix = "person/"

// choice is what a person chose with /heartbeat. Without one it is on for the owner alone.
type choice struct {
	On bool `json:"on"`
}

// person is the one whom a check is for.
type person struct {
	account  string   // that turned it on, or contract.Owner
	accounts []string // all of theirs
	zone     *time.Location
	quiet    string // quiet hours; empty: none
	channel  string // of their private conversation; empty: the default channel
}

func (p person) isOwner() bool { return p.account == contract.Owner }

func (p person) stateKey() string {
	if p.isOwner() {
		return stateKey
	}
	return stateKey + "/" + p.account
}

// principal returns for whom the agent works. A job without one is the owner's.
func (p person) principal() contract.Principal {
	if p.isOwner() {
		return contract.Principal{}
	}
	return contract.Principal{Person: p.account, Own: true}
}

// person returns the person of an account as they are now, and whether their heartbeat is
// on.
func (h *heartbeat) person(ctx context.Context, account string) (p person, on bool, err error) {
	p = person{account: account, accounts: []string{account}, zone: h.zone}
	chosen := choice{On: p.isOwner()}
	v, err := h.k.Get(ctx, personPrefix+account)
	if err == nil && v.Version != 0 {
		err = v.Decode(&chosen)
	}
	if err != nil {
		return p, false, fmt.Errorf("read what %s chose: %w", account, err)
	}
	var to contract.Recipient
	found, err := h.k.Ask(ctx, contract.ToolFindPerson, map[string]string{"person": "@" + account})
	switch {
	case errors.Is(err, contract.ErrNotFound), err == nil && found.IsError:
		return p, chosen.On && p.isOwner(), nil // an owner who has not written yet
	case errors.Is(err, contract.ErrUnavailable):
		return p, chosen.On && p.isOwner(), nil
	case err != nil:
		return p, false, fmt.Errorf("find the person of %s: %w", account, err)
	}
	if err := json.Unmarshal([]byte(found.Content), &to); err != nil {
		return p, false, fmt.Errorf("decode the person of %s: %w", account, err)
	}
	if !p.isOwner() && slices.Contains(to.Accounts, contract.Owner) {
		return p, false, nil // the account was linked to the owner's
	}
	p.accounts, p.quiet = to.Accounts, to.Quiet
	if !p.isOwner() {
		p.channel = to.ChannelID
	}
	if zone, err := time.LoadLocation(to.Timezone); to.Timezone != "" && err == nil {
		p.zone = zone
	}
	return p, chosen.On, nil
}

// others returns the events of the checks for the people other than the owner, unless the
// beat is late.
func (h *heartbeat) others(ctx context.Context, e sdk.Event) (effects sdk.Effects, err error) {
	if h.now().Sub(e.CreatedAt) > lateAfter {
		return nil, nil
	}
	err = h.k.Scan(ctx, personPrefix, func(v sdk.Value) error {
		var chosen choice
		account := v.Key[len(personPrefix):]
		if err := v.Decode(&chosen); err != nil {
			h.log.Error("what a person chose is damaged and counts as off", "account", account, "error", err)
			return nil
		}
		if chosen.On && account != contract.Owner {
			effects = append(effects, sdk.Publish(topicCheck, check{account}, sdk.Dedupe("check:"+e.ID+":"+account),
				sdk.Key(account)))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read what people chose: %w", err)
	}
	return effects, nil
}

// revoked ends the heartbeat of an account that is revoked, and forgets what it knew.
func (h *heartbeat) revoked(_ context.Context, e sdk.Event) (sdk.Effects, error) {
	var r contract.PersonRevoked
	if err := e.Decode(&r); err != nil || r.Person == "" || r.Person == contract.Owner {
		return nil, err
	}
	return forget(r.Person), nil
}

// changed ends the heartbeat of an account that may only chat now, or that is another
// person's now: theirs goes on.
func (h *heartbeat) changed(_ context.Context, e sdk.Event) (sdk.Effects, error) {
	var c contract.PersonChanged
	if err := e.Decode(&c); err != nil || c.Account == contract.Owner ||
		!slices.Contains([]string{"linked", "guest", "blocked"}, c.Change) {
		return nil, err
	}
	return forget(c.Account), nil
}

func forget(account string) sdk.Effects {
	return sdk.Effects{sdk.Delete(personPrefix + account), sdk.Delete(stateKey + "/" + account)}
}

// addOthers adds the figures of the people other than the owner, without the reasons of
// their escalations.
func (h *heartbeat) addOthers(ctx context.Context, out *report) error {
	err := h.k.Scan(ctx, stateKey+"/", func(v sdk.Value) error {
		var s state
		if err := v.Decode(&s); err != nil {
			h.log.Error("a stored state is damaged", "key", v.Key, "error", err)
			return nil
		}
		f := s.Figures
		out.ModelCalls, out.ModelErrors, out.Invalid = out.ModelCalls+f.ModelCalls, out.ModelErrors+f.ModelErrors,
			out.Invalid+f.Invalid
		out.InputTokens, out.OutputTokens = out.InputTokens+f.InputTokens, out.OutputTokens+f.OutputTokens
		out.Noops, out.Done, out.Escalations = out.Noops+f.Noops, out.Done+f.Done, out.Escalations+f.Escalations
		out.Repeated += f.Repeated
		for _, r := range s.Recent {
			r.Reason = "an open item of another person"
			out.Recent = append(out.Recent, r)
		}
		return nil
	})
	slices.SortStableFunc(out.Recent, func(a, b recent) int { return a.At.Compare(b.At) })
	return err
}

// switchTool is the command /heartbeat.
func (h *heartbeat) switchTool() sdk.Tool {
	return sdk.Tool{
		Name:        "switch",
		Description: "Turn the heartbeat of the person on or off, or say whether it is on.",
		Schema: json.RawMessage(`{"type": "object", "additionalProperties": false,
			"properties": {"state": {"enum": ["on", "off"]}}}`),
		Idempotent: true,
		Private:    true,
		Command:    "heartbeat",
		Call:       h.choose,
	}
}

// choose answers /heartbeat. What a person has turned on is looked for under all their
// accounts.
func (h *heartbeat) choose(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct {
		State string `json:"state"`
	}
	if err := c.Decode(&args); err != nil {
		return sdk.ToolResult{}, err
	}
	of := c.Principal
	if of.Group != "" || of.Person == "" || !of.Own || of.Confined {
		return sdk.ToolResult{}, words.Errorf("use /heartbeat in a private chat with me")
	}
	accounts := append([]string{of.Person}, of.Accounts...)
	if slices.Contains(accounts, contract.Owner) {
		accounts = []string{contract.Owner}
	}
	on := accounts[0] == contract.Owner
	var effects sdk.Effects
	for i, account := range accounts {
		v, err := h.k.Get(ctx, personPrefix+account)
		if err != nil {
			return sdk.ToolResult{}, err
		}
		chosen := choice{On: on && i == 0}
		if v.Version != 0 {
			if err := v.Decode(&chosen); err != nil {
				h.log.Error("what a person chose is damaged and counts as off", "account", account, "error", err)
			}
		}
		switch {
		case i == 0:
			on = chosen.On
		case chosen.On && slices.Index(accounts, account) == i:
			on = true
			if args.State != "" {
				effects = append(effects, forget(account)...)
			}
		}
	}
	if args.State != "" {
		on = args.State == "on"
		effects = append(effects, sdk.Put(personPrefix+accounts[0], choice{On: on}))
	}
	text := words.Say(c.Language, "I don't bring up anything on my own. To have me do so: /heartbeat on")
	if on {
		text = words.Say(c.Language, "From time to time I check what is open in your memory, "+
			"and bring it up when it's time. To stop that: /heartbeat off")
	}
	return sdk.JSON(map[string]string{"text": text}, effects...)
}
