package scheduler

import (
	"testing"
	"time"
)

func TestListInTheLanguageOfThePerson(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	s := &scheduler{location: zone}
	const content = `{"schedules": [
		{"id": "r1", "kind": "once", "state": "active", "message": "чай", "next": "2026-11-23T01:59:32Z", "in": "2 min 58 s",
			"timezone": "Europe/Berlin", "timing": "once, Mon 23 Nov 2026 02:59", "destination": "this conversation on cli_channel"},
		{"id": "r2", "kind": "recurring", "state": "paused", "message": "отчёт", "next": "2026-11-24T08:00:00Z", "in": "1 d 6 h",
			"timezone": "UTC", "timing": "every 1 h 30 min, until Thu 31 Dec 2026 09:00 (Europe/Berlin)", "destination": "the default channel", "skipped": 22}], "more": 1}`
	for language, want := range map[string]string{
		"": "Reminders and repeating schedules (times in Europe/Berlin):\n" +
			"\n- r1: “чай”, Mon 23 Nov 2026 02:59, in 2 min 58 s, to this conversation on cli_channel" +
			"\n- r2: “отчёт”, paused, Tue 24 Nov 2026 09:00 (Tue 24 Nov 2026 08:00, UTC), in 1 d 6 h, every 1 h 30 min, " +
			"until Thu 31 Dec 2026 09:00 (Europe/Berlin), " +
			"to the default channel, skipped 22 times" +
			"\n\nThere is 1 more. To see it: `/schedules limit=3`",
		"ru": "Напоминания и повторяющиеся расписания (время: Europe/Berlin):\n" +
			"\n- r1: “чай”, пн 23.11.2026 02:59, через 2 мин 58 с, куда: этот разговор в cli_channel" +
			"\n- r2: “отчёт”, приостановлено, вт 24.11.2026 09:00 (вт 24.11.2026 08:00, UTC), через 1 д 6 ч, " +
			"раз в 1 ч 30 мин, до чт 31.12.2026 09:00 (Europe/Berlin), куда: основной канал, пропущено 22 раза" +
			"\n\nЕсть ещё 1. Показать: `/schedules limit=3`",
	} {
		if got := s.listText(content, language); got != want {
			t.Errorf("in %q:\n%s\nwant:\n%s", language, got, want)
		}
	}
}
