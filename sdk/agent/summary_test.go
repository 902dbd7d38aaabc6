package agent

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// A long history is sent as a summary and the newest turns; nothing of it is
// lost, and every turn is either in the summary's source or in the request.
func TestALongHistoryIsSummarized(t *testing.T) {
	t.Parallel()
	w := newWorld()
	spec := &extensionv1.AgentSpec{MaxTokens: 2000}
	summaries := 0
	covered := ""
	w.model = func(_ context.Context, r *kernelv1.CompleteRequest, emit func(*sdk.Delta) error) error {
		if r.GetPurpose() == purposeSummary {
			summaries++
			covered = r.GetMessages()[1].GetContent()
			return text(fmt.Sprintf("summary %d", summaries)).emit(emit)
		}
		return text("noted").emit(emit)
	}
	seen := map[int]bool{} // of the facts, those in a summary's source
	a := w.agent(t, spec)
	for i := range 60 {
		if err := w.deliver(t.Context(), a, input(fmt.Sprintf("e%d", i),
			user(fmt.Sprintf("fact %03d %s", i, strings.Repeat("x", 300))))); err != nil {
			t.Fatal(err)
		}
		for j := range i {
			if strings.Contains(covered, fmt.Sprintf("fact %03d", j)) {
				seen[j] = true
			}
		}
		last := w.requests[len(w.requests)-1]
		all := strings.Join(contents(last), "\n")
		for j := range i {
			if !seen[j] && !strings.Contains(all, fmt.Sprintf("fact %03d", j)) {
				t.Fatalf("turn %d: fact %d is neither in the request nor in a summary", i, j)
			}
		}
		if len(all) > int(spec.GetMaxTokens())*bytesPerToken {
			t.Fatalf("turn %d: a request of %d bytes", i, len(all))
		}
		if summaries > 0 && !strings.Contains(all, fmt.Sprintf("[summary from switchboard]\n~~~\nsummary %d", summaries)) {
			t.Fatalf("turn %d: the newest summary is missing: %s", i, all)
		}
	}
	if summaries < 2 || summaries > 12 {
		t.Errorf("%d summaries of 60 turns", summaries)
	}
	if !strings.Contains(covered, "Earlier summary:\nsummary ") {
		t.Errorf("a summary does not build on the one before: %s", covered)
	}
	rows := 0
	for _, r := range w.rows {
		if r.GetKind() == contract.EntryInput {
			rows++
		}
	}
	if rows != 60 {
		t.Errorf("%d of 60 originals are stored", rows)
	}
	// A new process finds the summary in the history.
	asked := len(w.requests)
	if err := w.deliver(t.Context(), w.agent(t, spec), input("e99", user("hello"))); err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(contents(w.requests[asked]), "\n"); !strings.Contains(all, "summary from switchboard") {
		t.Errorf("a new process asks without the summary: %s", all)
	}
}

func TestATurnContinuesWithoutASummary(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		tried := 0
		w.model = func(_ context.Context, r *kernelv1.CompleteRequest, emit func(*sdk.Delta) error) error {
			if r.GetPurpose() == purposeSummary {
				tried++
				return contract.ErrUnavailable
			}
			return text("noted").emit(emit)
		}
		a := w.agent(t, &extensionv1.AgentSpec{MaxTokens: 2000})
		for i := range 60 {
			if err := w.deliver(t.Context(), a, input(fmt.Sprintf("e%d", i), user(strings.Repeat("x", 300)))); err != nil {
				t.Fatal(err)
			}
		}
		if tried != 1 || len(w.outputs) != 60 {
			t.Errorf("tried %d times, %d answers", tried, len(w.outputs))
		}
		time.Sleep(summaryPause)
		if err := w.deliver(t.Context(), a, input("e99", user("hello"))); err != nil || tried != 2 {
			t.Errorf("tried %d times, %v", tried, err)
		}
	})
}

// After a time without summaries, more rows must be summarized than fit into one
// request: a summary covers only rows that were in its request.
func TestASummaryCoversOnlyWhatItRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		works, source := false, ""
		w.model = func(_ context.Context, r *kernelv1.CompleteRequest, emit func(*sdk.Delta) error) error {
			switch {
			case r.GetPurpose() == purposeSummary && !works:
				return contract.ErrUnavailable
			case r.GetPurpose() == purposeSummary:
				source += r.GetMessages()[1].GetContent()
				return text("sum").emit(emit)
			}
			return text("noted").emit(emit)
		}
		a := w.agent(t, &extensionv1.AgentSpec{MaxTokens: 2000})
		say := func(i int) {
			if err := w.deliver(t.Context(), a, input(fmt.Sprintf("e%d", i),
				user(fmt.Sprintf("fact %03d %s", i, strings.Repeat("x", 300))))); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 60 {
			say(i)
		}
		works = true
		time.Sleep(summaryPause + time.Second)
		for i := range 3 {
			say(60 + i)
		}
		first := strings.Index(source, "fact ")
		var oldest int
		if _, err := fmt.Sscanf(source[first:], "fact %d", &oldest); err != nil {
			t.Fatal(err)
		}
		last := strings.Join(contents(w.requests[len(w.requests)-1]), "\n")
		for i := oldest; i < 63; i++ {
			if fact := fmt.Sprintf("fact %03d", i); !strings.Contains(source, fact) && !strings.Contains(last, fact) {
				t.Errorf("%s is in no summary and not in the request", fact)
			}
		}
	})
}
