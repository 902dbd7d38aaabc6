package tasks_test

import (
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/tasks"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

//nolint:paralleltest // the suite counts goroutines
func TestConformance(t *testing.T) {
	sdktest.Conformance(t, tasks.New, sdktest.Facts{
		ID: tasks.ID, Tools: true, Subscriptions: []string{contract.TopicAgentOutput, tasks.TopicIdle, tasks.TopicChanged},
		Commands: []string{"push", "run", "queue", "queue_remove", "task_cancel", "send", "receive", "check", "inbox"},
	})
}
