package bus_test

import (
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
)

func TestGrants(t *testing.T) {
	inWorld(t, func(w *world) {
		commit := func(a *bus.Actor, e *busv1.Effect) error {
			x := &extension{w: w, actor: a}
			_, err := x.commit(&busv1.Commit{Effects: []*busv1.Effect{e}})
			return err
		}
		nothing := &bus.Actor{ID: "x", Generation: 1}
		denied := map[string]*busv1.Effect{
			`"permissions: {publish: [a.b]}"`:      publishEffect("a.b", "x"),
			`"permissions: {effects: [withdraw]}"`: effect(&busv1.Withdraw{EventId: "e1"}),
			`"permissions: {effects: [session.ensure]}"`: {
				Kind: &busv1.Effect_SessionEnsure{SessionEnsure: &busv1.SessionEnsure{}},
			},
			`"permissions: {effects: [input]}"`: {
				Kind: &busv1.Effect_Input{Input: &busv1.Input{}},
			},
			`"permissions: {effects: [turn.cancel]}"`: {
				Kind: &busv1.Effect_TurnCancel{TurnCancel: &busv1.TurnCancel{}},
			},
			`lacks "provides: {channel: ...}"`:     publishEffect("user.message", "x"),
			`"x" lacks "provides: {channel: ...}"`: effect(&busv1.Receipt{}),
			`"x" has no agent section`: {
				Kind: &busv1.Effect_Append{Append: &busv1.Append{}},
			},
			`"agent.output" is published by the kernel`: publishEffect("agent.output", "x"),
			`"agent.input.bot" is published by the`:     publishEffect("agent.input.bot", "x"),
			`"channel.send.tg" is published by the`:     publishEffect("channel.send.tg", "x"),
			`"system.delivery.dead" is published by the`: publishEffect(
				"system.delivery.dead",
				"x",
			),
			`"system.extension.failed" is published by`: publishEffect(
				"system.extension.failed",
				"x",
			),
			`"schedules.declared" is published by the`:                                 publishEffect("schedules.declared", "x"),
			`"model.usage" is published by the kernel`:                                 publishEffect("model.usage", "x"),
			`the manifest of "x" lacks "permissions: {publish: [system.user.notify]}"`: publishEffect("system.user.notify", "x"),
		}
		for part, e := range denied {
			wantError(w, commit(nothing, e), contract.ErrDenied, part)
		}
		wantError(w, commit(nothing, publishEffect("No Topic", "x")), contract.ErrInvalid, "is not a topic")
		if err := commit(nothing, effect(&busv1.Put{Key: "k"})); err != nil {
			w.Errorf("its own keys need no grant: %v", err)
		}
		all := &bus.Actor{ID: "x", Generation: 1, Publish: []string{"*"}}
		wantError(w, commit(all, publishEffect("model.usage", "x")), contract.ErrDenied)
		wantError(w, commit(all, publishEffect("system.user.notify", "x")), contract.ErrDenied)
		if err := commit(all, publishEffect("a.b", "x")); err != nil {
			w.Error(err)
		}
	})
}

func TestMayWatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		granted, pattern string
		want             bool
	}{
		{"a.b", "a.b", true},
		{"a.*", "a.b", true},
		{"a.*", "a.b.*", true},
		{"a.*", "a.*", true},
		{"a.b", "a.*", false},
		{"a.b", "a.b.*", false},
		{"a.b.*", "a.*", false},
		{"a.*", "ab.*", false},
		{"a.*", "*", false},
		{"*", "*", true},
		{"*", "a.*", true},
		{"*", "agent.input.*", false},
		{"*", "user.*", false},
		{"*", "user.message", false},
		{"user.message", "user.message", true},
		{"agent.input.*", "agent.input.bot", true},
		{"a.*", "", false},
		{"a.*", "a.", false},
	} {
		a := &bus.Actor{ID: "x", Subscribe: []string{"z.z", c.granted}}
		if err := a.MayWatch(c.pattern); (err == nil) != c.want {
			t.Errorf("granted %s, watching %s: %v", c.granted, c.pattern, err)
		}
	}
}
