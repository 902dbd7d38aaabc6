package tasks

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

func TestRevokedPersonsTasksEnd(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b")
		g.call(main, "run", fields{"count": 1})
		payload, err := json.Marshal(contract.PersonRevoked{Sessions: []string{root, "s999"}})
		if err != nil {
			t.Fatal(err)
		}
		effects, err := g.x.handle(g.ctx, sdk.Event{ID: "e9", Topic: contract.TopicPersonRevoked, Payload: payload})
		if err != nil {
			t.Fatal(err)
		}
		var told contract.PersonEnded
		for _, e := range effects {
			pb, err := e.Proto()
			if err != nil {
				t.Fatal(err)
			}
			if p := pb.GetPublish(); p.GetTopic() == topicEnded {
				if err := json.Unmarshal(p.GetPayload(), &told); err != nil {
					t.Fatal(err)
				}
			}
		}
		if slices.Sort(told.Names); told.Kind != "task" || !slices.Equal(told.Names, []string{"a", "b"}) {
			t.Errorf("ended: %+v", told)
		}
		if err := g.apply(effects, nil); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b"} {
			if task := g.task(name); task.outcome() != Cancelled {
				t.Errorf("task %s: %+v", name, task)
			}
		}
	})
}
