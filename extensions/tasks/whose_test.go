package tasks

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// as makes a call for a person in a conversation: as a command of theirs, as the agent
// there or, without a session, from elsewhere.
func (g *game) as(p contract.Principal, session, id, name string, arguments fields) (string, error) {
	g.t.Helper()
	call := g.request(session, id, name, arguments)
	call.Principal = p
	result, err := g.tool(name)(g.ctx, call)
	if err == nil {
		err = g.apply(result.Effects, nil)
	}
	return result.Content, err
}

// TestWhoseTasks has each caller try each tool on each task.
func TestWhoseTasks(t *testing.T) {
	play(t, func(g *game) {
		people := map[string]contract.Principal{
			"anna":  {Person: "anna", Accounts: []string{"anna2"}, Own: true},
			"anna2": {Person: "anna2", Accounts: []string{"anna"}, Own: true},
			"boris": {Person: "boris", Own: true},
			"guest": {Person: "guest", Confined: true, Own: true},
			"home":  {Person: "anna", Group: "home"},
			"work":  {Person: "anna", Accounts: []string{"anna2"}, Group: "work", Confined: true, Own: true},
			"club":  {Person: "anna", Accounts: []string{"anna2"}, Group: "club", Confined: true, Own: true},
			"job":   {Person: "owner", Accounts: []string{"anna", "anna2"}, Own: true},
		}
		sees := map[string][]string{
			"anna": {"anna", "anna2", "home", "work", "club"}, "anna2": {"anna", "anna2", "home", "work", "club"},
			"boris": {"boris", "home"}, "guest": {"guest"}, "home": {"home"}, "work": {"work"}, "club": {"club"},
			"job": {"job", "anna", "anna2", "home", "work", "club"},
		}
		ids := map[string]string{}
		for name, p := range people {
			conversation := "chat of " + name
			g.sessions[conversation] = &session{id: conversation, agent: "orchestrator", key: "chan:" + name}
			content, err := g.as(p, conversation, "c1", "push", fields{"name": "of-" + name, "prompt": "Plan the party of " + name})
			var made pushed
			if err != nil || json.Unmarshal([]byte(content), &made) != nil {
				t.Fatalf("%s: %v, %s", name, err, content)
			}
			ids[name] = made.TaskID
			if _, err := g.as(p, conversation, "e1", "send", fields{"to": main, "message": "note of " + name}); err != nil {
				t.Fatal(err)
			}
		}
		for name, p := range people {
			chat := "chat of " + name
			for tool, shown := range map[string]string{"queue": "of-%s", "inbox": "chat of %s/main", "list": "of-%s"} {
				content, err := g.as(p, chat, "e1", tool, fields{"all": true})
				if err != nil {
					t.Errorf("%s calls %s: %v", name, tool, err)
				}
				for other := range people {
					told := strings.Contains(content, fmt.Sprintf(shown, other)+`"`)
					if want := slices.Contains(sees[name], other); told != want {
						t.Errorf("%s calls %s and is told of %s: %v", name, tool, other, told)
					}
				}
			}
			for other, id := range ids {
				if slices.Contains(sees[name], other) {
					if _, err := g.as(p, "", "c1", "show", fields{"id": id}); err != nil {
						t.Errorf("%s is not shown the task of %s: %v", name, other, err)
					}
					continue
				}
				for _, by := range []string{id, "of-" + other} {
					for _, try := range []struct{ session, tool, field string }{
						{"", "show", "id"}, {"", "cancel", "id"}, {chat, "task_cancel", "name"}, {chat, "queue_remove", "name"},
						{chat, "send", "to"}, {chat, "receive", "from"}, {chat, "check", "from"},
					} {
						_, hidden := g.as(p, try.session, "c2", try.tool, fields{try.field: by, "message": "hi"})
						_, missing := g.as(p, try.session, "c2", try.tool, fields{try.field: "nothing", "message": "hi"})
						if hidden == nil || missing == nil || strings.ReplaceAll(hidden.Error(), by, "nothing") != missing.Error() {
							t.Errorf("%s calls %s for %s: %v; for a missing one: %v", name, try.tool, by, hidden, missing)
						}
					}
				}
			}
		}
	})
}

func TestRemovedPersonsTasksAreDeleted(t *testing.T) {
	play(t, func(g *game) {
		anna := contract.Principal{Person: "anna", Own: true}
		give := func(p contract.Principal, names ...string) {
			for _, name := range names {
				if _, err := g.as(p, root, "c1", "push", fields{"name": name, "prompt": "a secret"}); err != nil {
					t.Fatal(err)
				}
			}
		}
		give(anna, "done", "running", "queued")
		g.call(main, "run", fields{"count": 2})
		g.finishTasks("done")
		g.states(Running, "queued")
		give(anna, "later")
		give(contract.Principal{Person: "boris", Own: true}, "his")
		revoke := func(p contract.PersonRevoked) (told contract.PersonEnded) {
			t.Helper()
			payload, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			effects, err := g.x.handle(g.ctx, sdk.Event{ID: "e9", Topic: contract.TopicPersonRevoked, Payload: payload})
			if err != nil {
				t.Fatal(err)
			}
			effects = slices.DeleteFunc(effects, func(e sdk.Effect) bool {
				pb, err := e.Proto()
				is := pb.GetPublish().GetTopic() == topicEnded
				if err == nil && is {
					err = json.Unmarshal(pb.GetPublish().GetPayload(), &told)
				}
				if err != nil {
					t.Fatal(err)
				}
				return is
			})
			if err := g.apply(effects, nil); err != nil {
				t.Fatal(err)
			}
			return told
		}
		told := revoke(contract.PersonRevoked{Person: "anna", Removed: true})
		if len(told.Names) != 3 || slices.Contains(told.Names, "running") {
			t.Errorf("the owner is told %q", told.Names)
		}
		g.settle()
		revoke(contract.PersonRevoked{Person: "anna", Removed: true}) // an event may come again
		g.settle()
		if left := g.task("his"); left.State != Queued && left.State != Running {
			t.Errorf("Boris' task is %+v", left)
		}
		for _, name := range []string{"done", "running", "queued", "later"} {
			g.noRows(taskKey(root, name))
		}
		his := g.task("his")
		g.mu.Lock()
		defer g.mu.Unlock()
		for key, v := range g.kv {
			if strings.Contains(string(v.Value), "secret") &&
				key != promptPrefix+his.ID && key != taskKey(root, "his") {
				t.Errorf("%s is still there: %s", key, v.Value)
			}
		}
	})
}
