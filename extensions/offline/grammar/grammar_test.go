package grammar

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func berlin(tb testing.TB) *time.Location {
	tb.Helper()
	loc, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		tb.Fatal(err)
	}
	return loc
}

// Thursday noon, in winter time.
func noon(tb testing.TB) time.Time {
	tb.Helper()
	return time.Date(2025, 11, 20, 12, 0, 0, 0, berlin(tb))
}

// show writes a reading on one line, as the tables expect it.
func show(r Reading) string {
	if r.Question != nil {
		return "? " + string(r.Question.Reason)
	}
	i := r.Intent
	parts := []string{i.Do}
	switch {
	case i.Verbatim:
		parts[0] = "later"
	case i.Do == "remember" && i.Flag != "":
		parts[0] = "prefer"
	case i.Flag == "all":
		parts = append(parts, "*")
	case i.Flag == "it" || i.Do == "connect":
		parts = append(parts, i.Flag)
	}
	if i.When != nil {
		parts = append(parts, showWhen(i.When))
	}
	if i.By != (Span{}) && i.When == nil {
		parts = append(parts, "+"+i.By.Exact.String())
	}
	switch {
	case i.All:
		parts = append(parts, "@*")
	case i.Channel != "" || i.Do == "send":
		parts = append(parts, "@"+i.Channel)
	}
	switch w := i.Which; {
	case w.It != "":
		parts = append(parts, "<"+w.It+">")
	case w.Name != "":
		parts = append(parts, w.Name)
	case w.Nth != 0:
		parts = append(parts, fmt.Sprint("#", w.Nth))
	}
	if i.List != "" {
		parts = append(parts, "["+i.List+"]")
	}
	out := strings.Join(parts, " ")
	if i.Text != "" {
		out += ": " + i.Text
	}
	return out
}

func showWhen(w When) string {
	switch w := w.(type) {
	case After:
		return "+" + w.Delay.String()
	case At:
		return w.Time.Format("2006-01-02 15:04")
	case Every:
		return "every " + w.Interval.String()
	case Cron:
		if w.Days > 0 {
			return fmt.Sprintf("cron %s every %d days", w.Expr, w.Days)
		}
		return "cron " + w.Expr
	}
	return "never"
}

type reading struct{ text, want string }

func check(t *testing.T, now time.Time, table []reading, names ...string) {
	t.Helper()
	for _, tt := range table {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()
			r := Parse(tt.text, now, names...)
			if got := show(r); got != tt.want {
				t.Errorf("Parse(%q)\n got %s\nwant %s", tt.text, got, tt.want)
			}
			if r.Question != nil && r.Question.Text() == "" {
				t.Errorf("the question %q has no text", r.Question.Reason)
			}
		})
	}
}

func TestRemindEnglish(t *testing.T) {
	t.Parallel()
	check(t, noon(t), []reading{
		{"in 5 minutes remind me in Telegram to turn off the kettle", "remind +5m0s @Telegram: turn off the kettle"},
		{"In 5 minutes, remind me in Telegram to turn off the kettle.", "remind +5m0s @Telegram: turn off the kettle"},
		{"remind me in Telegram in 5 minutes to turn off the kettle", "remind +5m0s @Telegram: turn off the kettle"},
		{"remind me to turn off the kettle in 5 minutes in Telegram", "remind +5m0s @Telegram: turn off the kettle"},
		{"remind me to turn off the kettle in Telegram in 5 minutes", "remind +5m0s @Telegram: turn off the kettle"},
		{"Remind me to turn off the kettle in five minutes!", "remind +5m0s: turn off the kettle"},
		{"remind me to leave in an hour and a half", "remind +1h30m0s: leave"},
		{"remind me in an hour and a half to leave", "remind +1h30m0s: leave"},
		{"in an hour and a half remind me to leave", "remind +1h30m0s: leave"},
		{"remind me to leave in one and a half hours", "remind +1h30m0s: leave"},
		{"remind me to leave in two hours and a half", "remind +2h30m0s: leave"},
		{"remind me to leave in 1.5 hours", "remind +1h30m0s: leave"},
		{"remind me to leave in an hour and a quarter", "remind +1h15m0s: leave"},
		{"remind me to leave in half an hour", "remind +30m0s: leave"},
		{"remind me to leave in a quarter of an hour", "remind +15m0s: leave"},
		{"remind me to leave in three quarters of an hour", "remind +45m0s: leave"},
		{"remind me to leave in 1 hour and 20 minutes", "remind +1h20m0s: leave"},
		{"remind me to leave in 1 hour, 20 minutes", "remind +1h20m0s: leave"},
		{"remind me to leave in 1h20m", "remind +1h20m0s: leave"},
		{"remind me to leave in 90 min", "remind +1h30m0s: leave"},
		{"remind me to leave in 5min", "remind +5m0s: leave"},
		{"remind me in twenty-five minutes to leave", "remind +25m0s: leave"},
		{"remind me in twenty five minutes to leave", "remind +25m0s: leave"},
		{"remind me in 30 seconds to breathe", "remind +30s: breathe"},
		{"remind me an hour from now to leave", "remind +1h0m0s: leave"},
		{"remind me to pay the rent in 3 days", "remind 2025-11-23 12:00: pay the rent"},
		{"remind me to pay the rent in a week at 10", "remind 2025-11-27 10:00: pay the rent"},
		{"remind me to pay the rent in 2 months", "remind 2026-01-20 12:00: pay the rent"},
		{"tomorrow at 9 remind me to call mom", "remind 2025-11-21 09:00: call mom"},
		{"remind me tomorrow at 9am to call mom", "remind 2025-11-21 09:00: call mom"},
		{"remind me tomorrow at 9 p.m. to call mom", "remind 2025-11-21 21:00: call mom"},
		{"remind me tomorrow to call mom at 9", "remind 2025-11-21 09:00: call mom"},
		{"remind me to call mom at 9 tomorrow", "remind 2025-11-21 09:00: call mom"},
		{"remind me to call mom tomorrow morning at 6", "remind 2025-11-21 06:00: call mom"},
		{"remind me to call mom tomorrow evening at 6:30", "remind 2025-11-21 18:30: call mom"},
		{"remind me to call mom tomorrow at 9 in the evening", "remind 2025-11-21 21:00: call mom"},
		{"remind me tonight at 8 to call mom", "remind 2025-11-20 20:00: call mom"},
		{"remind me this evening at 7 to call mom", "remind 2025-11-20 19:00: call mom"},
		{"remind me at 18:30 to leave", "remind 2025-11-20 18:30: leave"},
		{"at 18:30 remind me to leave please", "remind 2025-11-20 18:30: leave"},
		{"remind me at half past six in the evening to leave", "remind 2025-11-20 18:30: leave"},
		{"remind me tomorrow at quarter to ten to leave", "remind 2025-11-21 09:45: leave"},
		{"remind me tomorrow at 20 past 9 to leave", "remind 2025-11-21 09:20: leave"},
		{"remind me tomorrow at noon to eat", "remind 2025-11-21 12:00: eat"},
		{"remind me at midnight to sleep", "remind 2025-11-21 00:00: sleep"},
		{"remind me at 3 in the afternoon to eat", "remind 2025-11-20 15:00: eat"},
		{"on Friday at 10 remind me to submit the report", "remind 2025-11-21 10:00: submit the report"},
		{"remind me to submit the report on Friday at 10", "remind 2025-11-21 10:00: submit the report"},
		{"remind me to submit the report Friday at 10:00", "remind 2025-11-21 10:00: submit the report"},
		{"remind me on Monday morning at 8 to submit the report", "remind 2025-11-24 08:00: submit the report"},
		{"remind me next Wednesday at 10 to submit the report", "remind 2025-11-26 10:00: submit the report"},
		{"remind me the day after tomorrow at 10 to submit the report", "remind 2025-11-22 10:00: submit the report"},
		{"remind me on 25 December at 10 to unpack", "remind 2025-12-25 10:00: unpack"},
		{"remind me on December 25th at 10 to unpack", "remind 2025-12-25 10:00: unpack"},
		{"remind me on the 5th of January at 10 to unpack", "remind 2026-01-05 10:00: unpack"},
		{"remind me on December 25, 2026 at 10 to unpack", "remind 2026-12-25 10:00: unpack"},
		{"remind me on 2025-12-25 at 10:00 to unpack", "remind 2025-12-25 10:00: unpack"},
		{"remind me to unpack on 25.12.2025 at 10:00", "remind 2025-12-25 10:00: unpack"},
		{"remind me every day at 9 to take the pills", "remind cron 0 9 * * *: take the pills"},
		{"every day at 9 remind me to take the pills", "remind cron 0 9 * * *: take the pills"},
		{"every day at 9:15 remind me in Telegram to take the pills",
			"remind cron 15 9 * * * @Telegram: take the pills"},
		{"remind me to take the pills daily at 21:00", "remind cron 0 21 * * *: take the pills"},
		{"remind me every morning at 6 to run", "remind cron 0 6 * * *: run"},
		{"remind me every evening at 9 to stretch", "remind cron 0 21 * * *: stretch"},
		{"remind me to run every Monday at 10:00", "remind cron 0 10 * * 1: run"},
		{"remind me to run every Monday and Thursday at 10", "remind cron 0 10 * * 1,4: run"},
		{"remind me to run every Mon, Wed and Fri at 7:30", "remind cron 30 7 * * 1,3,5: run"},
		{"remind me to run on Sundays at 10", "remind cron 0 10 * * 0: run"},
		{"remind me on weekdays at 8 to leave", "remind cron 0 8 * * 1-5: leave"},
		{"every weekday at 8 remind me to leave", "remind cron 0 8 * * 1-5: leave"},
		{"every weekend at 11 remind me to sleep", "remind cron 0 11 * * 0,6: sleep"},
		{"every month on the 1st at 9 remind me to pay the rent", "remind cron 0 9 1 * *: pay the rent"},
		{"remind me on the 5th of every month at 10 to pay the rent", "remind cron 0 10 5 * *: pay the rent"},
		{"every 2 hours remind me to drink water", "remind every 2h0m0s: drink water"},
		{"remind me to drink water every 2 hours", "remind every 2h0m0s: drink water"},
		{"remind me every hour and a half to stand up", "remind every 1h30m0s: stand up"},
		{"remind me every half hour to stand up", "remind every 30m0s: stand up"},
		{"remind me hourly to stand up", "remind every 1h0m0s: stand up"},
		{"remind me at noon every day to eat", "remind cron 0 12 * * *: eat"},
		{"remind me not to forget the keys in 10 minutes", "remind +10m0s: not to forget the keys"},
		{"send me a reminder in 10 minutes to stretch", "remind +10m0s: stretch"},
		{"remind me about the meeting in 10 minutes", "remind +10m0s: the meeting"},
		{"remind me that the oven is on in 10 minutes", "remind +10m0s: the oven is on"},
		{"remind me in 10 minutes: buy milk at 7, tomorrow or never",
			"remind +10m0s: buy milk at 7, tomorrow or never"},
		{"remind me: buy milk in 10 minutes", "remind +10m0s: buy milk"},
		{`remind me tomorrow at 9 to "prepare for the meeting on Friday at 10"`,
			"remind 2025-11-21 09:00: prepare for the meeting on Friday at 10"},
		{`remind me "in a week" in 10 minutes`, "remind +10m0s: in a week"},
		{"can you remind me in 10 minutes to buy milk?", "remind +10m0s: buy milk"},
		{"could you please remind me to buy milk in 10 minutes, thanks", "remind +10m0s: buy milk"},
		{"set a reminder for me tomorrow at 9: dentist", "remind 2025-11-21 09:00: dentist"},
		{"set a reminder to buy milk in 10 minutes", "remind +10m0s: buy milk"},
		{"remind me via telegram_channel in 10 minutes to buy milk", "remind +10m0s @telegram_channel: buy milk"},
		{"remind me here in 10 minutes to buy milk", "remind +10m0s: buy milk"},
		{"remind me in Pigeon to buy milk in 10 minutes", "remind +10m0s @Pigeon: buy milk"},
		{"remind me to put the milk in the fridge in 10 minutes", "remind +10m0s: put the milk in the fridge"},
		{"remind me to buy 3 apples in 10 minutes", "remind +10m0s: buy 3 apples"},
		{"remind me to be home by 9 in 10 minutes", "remind +10m0s: be home by 9"},
	})
}

func TestRemindRussian(t *testing.T) {
	t.Parallel()
	check(t, noon(t), []reading{
		{"через 5 минут напомни мне в Telegram выключить чайник", "remind +5m0s @Telegram: выключить чайник"},
		{"Через 5 минут напомни мне в Телеграме выключить чайник", "remind +5m0s @Телеграме: выключить чайник"},
		{"напомни мне через 5 минут выключить чайник", "remind +5m0s: выключить чайник"},
		{"напомни выключить чайник через пять минут", "remind +5m0s: выключить чайник"},
		{"напомни выключить чайник через 5 минут в телеграм", "remind +5m0s @телеграм: выключить чайник"},
		{"напомни в телеге выключить чайник через 5 мин.", "remind +5m0s @телеге: выключить чайник"},
		{"напомни через полтора часа выйти", "remind +1h30m0s: выйти"},
		{"через полтора часа напомни выйти", "remind +1h30m0s: выйти"},
		{"напомни выйти через полтора часа", "remind +1h30m0s: выйти"},
		{"напомни выйти через час с половиной", "remind +1h30m0s: выйти"},
		{"напомни выйти через два с половиной часа", "remind +2h30m0s: выйти"},
		{"напомни выйти через 2,5 часа", "remind +2h30m0s: выйти"},
		{"напомни выйти через полчаса", "remind +30m0s: выйти"},
		{"напомни выйти через час", "remind +1h0m0s: выйти"},
		{"напомни через час выйти", "remind +1h0m0s: выйти"},
		{"напомни выйти через час и 20 минут", "remind +1h20m0s: выйти"},
		{"напомни выйти через час двадцать минут", "remind +1h20m0s: выйти"},
		{"напомни выйти через четверть часа", "remind +15m0s: выйти"},
		{"напомни выйти через минуту", "remind +1m0s: выйти"},
		{"напомни выйти через двадцать пять минут", "remind +25m0s: выйти"},
		{"напомни выйти через 1ч", "remind +1h0m0s: выйти"},
		{"напомни через 3 дня заплатить за квартиру", "remind 2025-11-23 12:00: заплатить за квартиру"},
		{"напомни через неделю в 10 утра заплатить за квартиру", "remind 2025-11-27 10:00: заплатить за квартиру"},
		{"напомни через сутки проверить тесто", "remind 2025-11-21 12:00: проверить тесто"},
		{"завтра в 9 утра напомни позвонить маме", "remind 2025-11-21 09:00: позвонить маме"},
		{"напомни мне завтра в 9 утра позвонить маме", "remind 2025-11-21 09:00: позвонить маме"},
		{"напомни завтра позвонить маме в 9", "remind 2025-11-21 09:00: позвонить маме"},
		{"напомни позвонить маме завтра утром в 9", "remind 2025-11-21 09:00: позвонить маме"},
		{"напомни позвонить маме завтра вечером в 9", "remind 2025-11-21 21:00: позвонить маме"},
		{"напомни позвонить маме сегодня в 7 вечера", "remind 2025-11-20 19:00: позвонить маме"},
		{"напомни позвонить маме послезавтра в девять часов", "remind 2025-11-22 09:00: позвонить маме"},
		{"напомни позвонить маме завтра в 9 часов 30 минут", "remind 2025-11-21 09:30: позвонить маме"},
		{"напомни позвонить маме завтра в 9 30", "remind 2025-11-21 09:30: позвонить маме"},
		{"напомни позвонить маме завтра в половине десятого", "remind 2025-11-21 09:30: позвонить маме"},
		{"напомни позвонить маме завтра в полдесятого", "remind 2025-11-21 09:30: позвонить маме"},
		{"напомни позвонить маме завтра без четверти десять", "remind 2025-11-21 09:45: позвонить маме"},
		{"напомни позвонить маме в 18:30", "remind 2025-11-20 18:30: позвонить маме"},
		{"напомни позвонить маме завтра в 5:30", "remind 2025-11-21 05:30: позвонить маме"},
		{"напомни в три часа дня позвонить маме", "remind 2025-11-20 15:00: позвонить маме"},
		{"напомни в час дня позвонить маме", "remind 2025-11-20 13:00: позвонить маме"},
		{"напомни в 2 часа ночи посмотреть на звезды", "remind 2025-11-21 02:00: посмотреть на звезды"},
		{"напомни завтра в полдень поесть", "remind 2025-11-21 12:00: поесть"},
		{"напомни в полночь лечь спать", "remind 2025-11-21 00:00: лечь спать"},
		{"в пятницу в 10 напомни сдать отчёт", "remind 2025-11-21 10:00: сдать отчёт"},
		{"напомни сдать отчёт в пятницу в 10", "remind 2025-11-21 10:00: сдать отчёт"},
		{"напомни во вторник в 10 сдать отчёт", "remind 2025-11-25 10:00: сдать отчёт"},
		{"в пятницу напомни мне в 10 сдать отчёт", "remind 2025-11-21 10:00: сдать отчёт"},
		{"напомни 25 декабря в 10 распаковать подарки", "remind 2025-12-25 10:00: распаковать подарки"},
		{"напомни 25-го декабря 2026 года в 10 распаковать подарки", "remind 2026-12-25 10:00: распаковать подарки"},
		{"напомни 25.12.2025 в 10:00 распаковать подарки", "remind 2025-12-25 10:00: распаковать подарки"},
		{"напоминай каждый день в 9 пить таблетки", "remind cron 0 9 * * *: пить таблетки"},
		{"каждый день в 9 напоминай мне в Telegram пить таблетки", "remind cron 0 9 * * * @Telegram: пить таблетки"},
		{"напоминай пить таблетки ежедневно в 21:00", "remind cron 0 21 * * *: пить таблетки"},
		{"каждое утро в 6 напоминай бегать", "remind cron 0 6 * * *: бегать"},
		{"каждый понедельник в 10:00 напоминай о планёрке", "remind cron 0 10 * * 1: о планёрке"},
		{"напоминай о планёрке по понедельникам и четвергам в 10", "remind cron 0 10 * * 1,4: о планёрке"},
		{"каждую пятницу в 18 напоминай сдать отчёт", "remind cron 0 18 * * 5: сдать отчёт"},
		{"по будням в 8 напоминай выходить", "remind cron 0 8 * * 1-5: выходить"},
		{"по выходным в 11 напоминай спать", "remind cron 0 11 * * 0,6: спать"},
		{"каждый месяц 1 числа в 9 напоминай платить за квартиру", "remind cron 0 9 1 * *: платить за квартиру"},
		{"5 числа каждого месяца в 9 напоминай платить за квартиру", "remind cron 0 9 5 * *: платить за квартиру"},
		{"каждые 2 часа напоминай пить воду", "remind every 2h0m0s: пить воду"},
		{"напоминай пить воду раз в час", "remind every 1h0m0s: пить воду"},
		{"напоминай пить воду каждые полтора часа", "remind every 1h30m0s: пить воду"},
		{"напоминай пить воду каждые полчаса", "remind every 30m0s: пить воду"},
		{"напоминай пить воду раз в 2 часа", "remind every 2h0m0s: пить воду"},
		{"напомни через 10 минут: завтра в 9 или в 10", "remind +10m0s: завтра в 9 или в 10"},
		{"напомни через 10 минут, что в духовке пирог", "remind +10m0s: в духовке пирог"},
		{"напомни про встречу через 10 минут", "remind +10m0s: про встречу"},
		{"напомни «в пятницу в 10» через 10 минут", "remind +10m0s: в пятницу в 10"},
		{"пожалуйста, напомни через 10 минут купить молоко", "remind +10m0s: купить молоко"},
		{"не забудь напомнить мне через 10 минут купить молоко", "remind +10m0s: купить молоко"},
		{"поставь напоминание на завтра в 9", "? no_text"},
		{"поставь напоминание на завтра в 9: врач", "remind 2025-11-21 09:00: врач"},
		{"поставь напоминание завтра в 9: врач", "remind 2025-11-21 09:00: врач"},
		{"напомни через час зайти в магазин", "remind +1h0m0s: зайти в магазин"},
	})
}

func TestRemindAsksBack(t *testing.T) {
	t.Parallel()
	check(t, noon(t), []reading{
		{"remind me", "? no_text"},
		{"remind me in 5 minutes", "? no_text"},
		{"remind me in 5 minutes to", "? no_text"},
		{`remind me in 5 minutes to ""`, "? no_text"},
		{"remind me in 5 minutes: «»", "? no_text"},
		{"remind me to call mom", "? no_time"},
		{"remind me to call mom tomorrow", "? no_clock"},
		{"remind me at 18:00 to prepare lunch tomorrow", "? two_times"},
		{"say hi in Telegram ok buddy", "? not_understood"},
		{"remind me on Friday to call mom", "? no_clock"},
		{"remind me every day to take the pills", "? no_clock"},
		{"remind me tomorrow morning to call mom", "remind 2025-11-21 09:00: call mom"},
		{"remind me in an hour or so to leave", "? not_understood"},
		{"remind me in an hour or two to leave", "? not_understood"},
		{"remind me to leave in 2 or in 3 hours", "? not_understood"},
		{"remind me to leave in two or three hours", "? no_time"},
		{"remind me in 2-3 hours to leave", "? vague"},
		{"remind me in a few minutes to leave", "? vague"},
		{"remind me in a couple of hours to leave", "? vague"},
		{"remind me in about an hour to leave", "? vague"},
		{"remind me around 9 to leave", "? not_understood"},
		{"remind me at about 9 to leave", "? vague"},
		{"remind me at 9 sharp to leave", "? not_understood"},
		{"remind me at 8 or 9 to leave", "? not_understood"},
		{"remind me to leave at 8 or 9", "? inner_time"},
		{"remind me to leave at 18:30 Moscow time", "? inner_time"},
		{"remind me tomorrow at 5 to leave", "? am_pm"},
		{"remind me at 5 to leave", "? am_pm"},
		{"remind me at 9 to leave", "? am_pm"},
		{"remind me tomorrow at 5:30 to leave", "? am_pm"},
		{"remind me every day at 5 to leave", "? am_pm"},
		{"remind me at 11:30 am to leave", "? past"},
		{"remind me today at 09:00 to leave", "? past"},
		{"remind me on 2025-11-01 at 10:00 to leave", "? past"},
		{"remind me on 5 November at 10 to leave", "? past"},
		{"remind me at 25:00 to leave", "? no_such_time"},
		{"remind me at 13 pm to leave", "? no_such_time"},
		{"remind me on 30 February at 10 to leave", "? no_such_time"},
		{"remind me on 12/25 at 10 to leave", "? ambiguous_date"},
		{"remind me on the 25th at 10 to leave", "? no_month"},
		{"remind me on Thursday at 18:00 to leave", "? ambiguous_day"},
		{"remind me next Friday at 10 to leave", "? ambiguous_day"},
		{"remind me tomorrow at midnight to leave", "? midnight"},
		{"remind me in 5 minutes to buy milk at 7", "? two_times"},
		{"remind me tomorrow to prepare for the meeting on Friday at 10", "? two_times"},
		{"remind me at 18:00 to leave at 19:00", "? two_times"},
		{"remind me in 5 minutes to call mom tomorrow about the party", "? two_times"},
		{"remind me in 10 seconds to leave at 18:30", "? two_times"},
		{"remind me every other day at 9 to run", "remind cron 0 9 * * * every 2 days: run"},
		{"remind me every three days at 9 to run", "remind cron 0 9 * * * every 3 days: run"},
		{"remind me weekly at 9 to run", "remind cron 0 9 * * * every 7 days: run"},
		{"remind me every 2 weeks on Monday at 9 to run", "remind cron 0 9 * * 1 every 14 days: run"},
		{"remind me every other Monday at 9 to run", "remind cron 0 9 * * 1 every 14 days: run"},
		{"remind me every second Monday of the month at 9 to run", "? no_rule"},
		{"remind me every other month at 9 to run", "? no_rule"},
		{"remind me every 3 days and 2 hours to run", "? no_rule"},
		{"remind me every 400 days at 9 to run", "? too_far"},
		{"напоминай через день в 9 пить воду", "remind cron 0 9 * * * every 2 days: пить воду"},
		{"напомни через день в 9 выпить воду", "? vague"},
		{"напоминай каждый второй день в 9 пить воду", "remind cron 0 9 * * * every 2 days: пить воду"},
		{"напоминай каждый второй понедельник в 9 пить воду", "remind cron 0 9 * * 1 every 14 days: пить воду"},
		{"напоминай каждый второй понедельник месяца в 9 пить воду", "? no_rule"},
		{"remind me every 3 days to run", "? no_clock"},
		{"remind me every week to run", "? no_clock"},
		{"remind me twice a day to run", "? no_rule"},
		{"remind me every 10 seconds to run", "? too_often"},
		{"remind me every month on the 31st at 9 to pay", "? not_every_month"},
		{"remind me every hour at 9 to run", "? two_times"},
		{"remind me every day at 9 and 18 to run", "? not_understood"},
		{"remind me to run every day at 9 and 18", "? inner_time"},
		{"remind me to run every day at 9 until Friday", "? two_times"},
		{"remind me in 20 years to leave", "? too_far"},
		{"remind me in 5 minutes to buy milk. And in 10 minutes to drink it", "? two_times"},
		{"remind me in 5 minutes to buy milk and remind me to drink it", "? two_commands"},
		{"don't remind me in 5 minutes to leave", "? not_understood"},
		{"maybe remind me in 5 minutes to leave", "? not_understood"},
		{"remind Bob in 5 minutes to leave", "? recipient"},
		{"remind me in Telegram in 5 minutes to leave in Slack", "? two_channels"},
		{"remind me to answer Bob in Telegram in 5 minutes", "? inner_channel"},
		{"remind me in 0 minutes to leave", "? past"},
		{"напомни", "? no_text"},
		{"напомни через 5 минут", "? no_text"},
		{"напомни позвонить маме", "? no_time"},
		{"напомни завтра позвонить маме", "? no_clock"},
		{"напомни завтра утром позвонить маме", "remind 2025-11-21 09:00: позвонить маме"},
		{"напомни в пятницу позвонить маме", "? no_clock"},
		{"напомни через час или два позвонить маме", "? not_understood"},
		{"напомни через час с небольшим позвонить маме", "? not_understood"},
		{"напомни через час двадцать позвонить маме", "? not_understood"},
		{"напомни через два-три часа позвонить маме", "? vague"},
		{"напомни через пару минут позвонить маме", "? vague"},
		{"напомни через несколько часов позвонить маме", "? vague"},
		{"напомни примерно через час позвонить маме", "? inner_time"},
		{"напомни позвонить маме через 2 или через 3 часа", "? not_understood"},
		{"напомни позвонить маме через два, через три часа", "? not_understood"},
		{"напомни завтра в 9 или в 10 позвонить маме", "? not_understood"},
		{"напомни завтра в 9 по Москве позвонить маме", "? not_understood"},
		{"напомни завтра в 5 позвонить маме", "? am_pm"},
		{"напомни в 5 позвонить маме", "? am_pm"},
		{"напомни сегодня в 9 утра позвонить маме", "? past"},
		{"напомни в 11:30 позвонить маме", "? past"},
		{"напомни в четверг в 18:00 позвонить маме", "? ambiguous_day"},
		{"напомни завтра в полночь позвонить маме", "? midnight"},
		{"напомни через час позвонить маме завтра", "? two_times"},
		{"напомни завтра в 9 позвонить маме в 10", "? two_times"},
		{"напоминай два раза в день пить воду", "? no_rule"},
		{"напоминай раз в неделю пить воду", "? no_clock"},
		{"напоминай через день пить воду", "? no_clock"},
		{"напоминай каждые 3 дня пить воду", "? no_clock"},
		{"напоминай каждый день кроме воскресенья в 9 пить воду", "? not_understood"},
		{"не напоминай мне через 5 минут выйти", "? not_understood"},
		{"напомни 31 числа в 9 заплатить", "? no_month"},
		{"напомни в 18 утра выйти", "? no_such_time"},
		{"напомни через 5 минут выйти и напомни через 10 минут войти", "? two_commands"},
	})
}

func TestSend(t *testing.T) {
	t.Parallel()
	check(t, noon(t), []reading{
		{"say hi to me in Telegram", "send @Telegram: Hi"},
		{"Say hi to me in Telegram!", "send @Telegram: Hi"},
		{"please say hello in telegram", "send @telegram: Hello"},
		{"say good morning to me on Telegram", "send @Telegram: Good morning"},
		{"say 'the kettle is on' in Telegram", "send @Telegram: the kettle is on"},
		{"send 'text' to Telegram", "send @Telegram: text"},
		{`send me "in 5 minutes, at 9" in Telegram`, "send @Telegram: in 5 minutes, at 9"},
		{"send to Telegram: text with: colons. And stops.", "send @Telegram: text with: colons. And stops."},
		{"send hi to telegram_channel", "send @telegram_channel: Hi"},
		{"send a greeting to Telegram", "send @Telegram: Hi"},
		{"send 'text' to carrier pigeon", "send @carrier pigeon: text"},
		{"send 'text' to the pigeon channel", "send @pigeon channel: text"},
		{"write me in Pigeon: text", "send @Pigeon: text"},
		{"write to me in Telegram that the kettle is on", "send @Telegram: the kettle is on"},
		{"message me on Telegram the kettle is on", "send @Telegram: the kettle is on"},
		{"send 'text' to all channels", "send @*: text"},
		{"in 5 minutes say hi to me in Telegram", "later +5m0s @Telegram: Hi"},
		{"say hi in Telegram in 5 minutes", "later +5m0s @Telegram: Hi"},
		{"send 'text' to Telegram tomorrow at 9", "later 2025-11-21 09:00 @Telegram: text"},
		{"say hi to me in Telegram right now", "send @Telegram: Hi"},
		{"send a message to telegram saying hello", "send @telegram: hello"},
		{"tell me in telegram that dinner is ready in 5 minutes", "? inner_time"},
		{"in 5 minutes tell me in telegram that dinner is ready", "later +5m0s @telegram: dinner is ready"},
		{"say hi", "? no_channel"},
		{"send 'text' to me", "? no_channel"},
		{"say hi to Bob in Telegram", "? recipient"},
		{"say good luck in Telegram", "? unquoted"},
		{"send hello world to Telegram", "? not_understood"},
		{"write me in Telegram", "? no_message"},
		{"say hi in Telegram and in Slack", "? not_understood"},
		{"say hi in Telegram in Slack", "? two_channels"},
		{"message me on Telegram the kettle is on at 9 or so", "? inner_time"},
		{"say hi in Telegram in an hour or so", "? not_understood"},
		{"tell me a joke", "? unknown"},
		{"write a poem about the sea", "? unknown"},
		{"передай мне привет в Telegram", "send @Telegram: Привет"},
		{"Передай мне привет в Telegram", "send @Telegram: Привет"},
		{"передай привет мне в телеграм", "send @телеграм: Привет"},
		{"скажи привет в телеграме", "send @телеграме: Привет"},
		{"поздоровайся со мной в Telegram", "send @Telegram: Привет"},
		{"отправь «чайник кипит» в Telegram", "send @Telegram: чайник кипит"},
		{"отправь в телегу сообщение «чайник кипит»", "send @телегу: чайник кипит"},
		{"напиши мне в Телеграм: чайник кипит, через 5 минут", "send @Телеграм: чайник кипит, через 5 минут"},
		{"напиши мне в телеграм, что чайник кипит", "send @телеграм: чайник кипит"},
		{"напиши мне в Telegram купить хлеб", "send @Telegram: купить хлеб"},
		{"напиши мне в пейджер: чайник кипит", "send @пейджер: чайник кипит"},
		{"отправь во все каналы: чайник кипит", "send @*: чайник кипит"},
		{"через 5 минут напиши мне в Telegram: чайник кипит", "later +5m0s @Telegram: чайник кипит"},
		{"передай привет Маше в Telegram", "? not_understood"},
		{"передай привет", "? no_channel"},
		{"отправь чайник кипит в Telegram", "? unquoted"},
		{"напиши мне в Telegram", "? no_message"},
		{"напиши стихотворение о море", "? unknown"},
		{"через час или два напиши мне в Telegram: чайник", "? unknown"},
	})
}

func TestManage(t *testing.T) {
	t.Parallel()
	check(t, noon(t), []reading{
		{"list reminders", "list"},
		{"Show me my reminders, please.", "list"},
		{"what reminders do I have?", "list"},
		{"what is scheduled?", "list"},
		{"reminders", "list"},
		{"покажи мои напоминания", "list"},
		{"какие у меня напоминания?", "list"},
		{"список напоминаний", "list"},
		{"что запланировано?", "list"},
		{"list channels", "list_channels"},
		{"which channels are there?", "list_channels"},
		{"покажи каналы", "list_channels"},
		{"какие есть каналы?", "list_channels"},
		{"cancel all reminders", "cancel *"},
		{"cancel everything", "cancel *"},
		{"cancel the reminder", "cancel"},
		{"cancel reminder 3", "cancel 3"},
		{"cancel reminder #3", "cancel 3"},
		{"cancel 3", "cancel 3"},
		{"cancel r3", "cancel r3"},
		{"отмени r3", "cancel r3"},
		{"delete the reminder about the kettle", "cancel kettle"},
		{"cancel the reminder to turn off the kettle", "cancel turn off the kettle"},
		{"cancel the kettle reminder", "cancel kettle"},
		{"cancel the second reminder", "cancel #2"},
		{"cancel reminder 'turn off the kettle'", "cancel turn off the kettle"},
		{"cancel reminder sch_01h2x", "cancel sch_01h2x"},
		{"отмени все напоминания", "cancel *"},
		{"отмени напоминание", "cancel"},
		{"отмени напоминание 3", "cancel 3"},
		{"отмени напоминание №3", "cancel 3"},
		{"удали напоминание про чайник", "cancel чайник"},
		{"отмени напоминание выключить чайник", "cancel выключить чайник"},
		{"отмени второе напоминание", "cancel #2"},
		{"cancel my subscription", "cancel subscription"},
		{"cancel", "cancel <that>"},
		{"отмени", "cancel <that>"},
		{"hi", "greet"},
		{"Hello!", "greet"},
		{"good morning", "greet"},
		{"привет", "greet"},
		{"Добрый день!", "greet"},
		{"thanks", "thanks"},
		{"спасибо!", "thanks"},
		{"help", "help"},
		{"what can you do?", "help"},
		{"who are you", "help"},
		{"что ты умеешь?", "help"},
		{"", "? unknown"},
		{"   \n\t ", "? unknown"},
		{"what is the capital of France?", "? unknown"},
		{"сколько будет два плюс два", "calculate: 4"},
		{"2 + 2 * 2", "calculate: 6"},
		{"(3 - 1) * 4.5", "calculate: 9"},
		{"what is 15% of 80 plus 1", "calculate: 13"},
		{"100 / 10% of 50", "calculate: 20"},
		{"010 + 1", "calculate: 11"},
		{"10 / 4", "calculate: 2.5"},
		{"1 / 0", "? unknown"},
		{"15% of (80 + 20)", "? unknown"},
		{"1 & 3", "? unknown"},
		{"5", "pick 5"},
		{"list reminders and cancel all", "? unknown"},
	})
}

func TestNamesOfChannels(t *testing.T) {
	t.Parallel()
	check(t, noon(t), []reading{
		{"remind me to put the milk in the fridge in 5 minutes", "remind +5m0s @fridge: put the milk"},
		{"remind me to drink in Carrier Pigeon in 5 minutes", "remind +5m0s @Carrier Pigeon: drink"},
		{"напомни мне в пейджере попить через 5 минут", "remind +5m0s @пейджере: попить"},
		{"напиши мне в пейджер купить хлеб", "send @пейджер: купить хлеб"},
	}, "fridge_channel", "Fridge", "carrier_pigeon", "Carrier Pigeon", "Пейджер")

	r := Parse("remind me to put the milk in the fridge in 5 minutes", noon(t))
	if r.Intent == nil || !r.Intent.MayNameChannel {
		t.Errorf("a text that may name a channel is not marked: %+v", r)
	}
	r = Parse("remind me to drink in 5 minutes", noon(t))
	if r.Intent == nil || r.Intent.MayNameChannel {
		t.Errorf("a text that names nothing is marked: %+v", r)
	}
}

func TestSameChannel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		said, id, name string
		want           bool
	}{
		{"Telegram", "telegram_channel", "Telegram", true},
		{"телеграме", "telegram_channel", "Telegram", true},
		{"телега", "telegram_channel", "My bot", true},
		{"telegram_channel", "telegram_channel", "Bot", true},
		{"terminal", "cli_channel", "CLI", true},
		{"carrier pigeon", "birds", "Carrier Pigeon", true},
		{"пейджере", "pager", "Пейджер", true},
		{"pigeon channel", "pigeon_channel", "P", true},
		{"Telegram", "telegram_work_channel", "Telegram work", false},
		{"gram", "telegram_channel", "Telegram", false},
		{"channel", "telegram_channel", "Telegram", false},
		{"", "telegram_channel", "Telegram", false},
	} {
		if got := SameChannel(tt.said, tt.id, tt.name); got != tt.want {
			t.Errorf("SameChannel(%q, %q, %q) = %v", tt.said, tt.id, tt.name, got)
		}
	}
}

func TestTask(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ prompt, channel, text string }{
		{"Pending reminder (channel: telegram_channel): turn off the kettle", "telegram_channel",
			"turn off the kettle"},
		{"Pending reminder (channel: telegram_channel): remind user about kettle", "telegram_channel", "kettle"},
		{"Pending reminder: user asked to be reminded in Telegram about kettle", "Telegram", "kettle"},
		{"Напоминание (канал: telegram_channel): выключить чайник", "telegram_channel", "выключить чайник"},
		{"Напоминание: пользователь просил напомнить в Telegram выключить чайник", "Telegram", "выключить чайник"},
		{"Tell the user something", "", ""},
		{"Send it in Telegram or in Slack", "", ""},
		{"Pending reminder (channel: telegram_channel):", "", ""},
	} {
		got, ok := ParseTask(tt.prompt)
		if ok != (tt.channel != "") || got.Channel != tt.channel || got.Text != tt.text {
			t.Errorf("ParseTask(%q) = %+v, %v", tt.prompt, got, ok)
		}
	}
}

// During a clock change a time may not exist, or happen twice.
func TestClockChange(t *testing.T) {
	t.Parallel()
	loc := berlin(t)
	spring := time.Date(2025, 3, 29, 12, 0, 0, 0, loc)
	autumn := time.Date(2025, 10, 25, 12, 0, 0, 0, loc)
	for _, tt := range []struct {
		now        time.Time
		text, want string
	}{
		{spring, "remind me tomorrow at 02:30 to wake up", "? no_such_time"},
		{spring, "remind me tomorrow at 03:30 to wake up", "remind 2025-03-30 03:30: wake up"},
		{spring, "remind me in 1 day to wake up", "remind 2025-03-30 12:00: wake up"},
		{autumn, "remind me tomorrow at 02:30 to wake up", "? twice"},
		{autumn, "remind me tomorrow at 03:30 to wake up", "remind 2025-10-26 03:30: wake up"},
	} {
		if got := show(Parse(tt.text, tt.now)); got != tt.want {
			t.Errorf("%s, %s: got %s, want %s", tt.now, tt.text, got, tt.want)
		}
	}
}

func TestLanguage(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Language{
		"remind me to call Маша in 5 minutes": English,
		"напомни через 5 минут run backup.sh": Russian,
		"say hi in телеграм":                  English,
		"what?":                               English,
		"что это такое":                       Russian,
		"напомни":                             Russian,
	} {
		r := Parse(text, noon(t))
		if r.Language != want || (r.Question != nil && r.Question.Language != want) {
			t.Errorf("%q is read as %s, want %s", text, r.Language, want)
		}
	}
}

func TestQuestions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"remind me tomorrow to call mom":        "What time tomorrow?",
		"Tomorrow remind me to call mom":        "What time tomorrow?",
		"remind me to call mom Friday":          "What time Friday?",
		"Every morning remind me to run":        "What time every morning?",
		"remind me in 10 minutes":               "What should I remind you about?",
		"write me in Telegram":                  "What should I write?",
		"remember that":                         "What should I remember?",
		"remind me at 25:00 to leave":           "“at 25:00” isn't a valid time. What time did you mean?",
		"remind me tomorrow at 5:30 to leave":   "Morning or evening? “at 5:30” could be 05:30 or 17:30.",
		"maybe remind me in 5 minutes to leave": "I didn't understand “maybe”, so I changed nothing.",
		"Завтра напомни позвонить маме":         "Во сколько завтра?",
		"напомни через 5 минут":                 "О чём напомнить?",
		"напомни завтра в 5 позвонить маме":     "Утром или вечером? «в 5» — это 05:00 или 17:00?",
		"напомни в 18 утра выйти":               "«в 18 утра» — такого времени не бывает. Какое время вы имели в виду?",
		"напомни через час позвонить маме завтра": "Здесь два времени: «через час» и «завтра». Оставьте одно из них. " +
			"Если второе относится к тексту, возьмите текст в кавычки.",
	} {
		r := Parse(text, noon(t))
		if r.Question == nil || r.Question.Text() != want {
			t.Errorf("Parse(%q)\n got %+v\nwant %s", text, r.Question, want)
		}
	}
}

func TestTooLong(t *testing.T) {
	t.Parallel()
	r := Parse("remind me in 5 minutes: "+strings.Repeat("a ", maxLength), noon(t))
	if r.Question == nil || r.Question.Reason != TooLong {
		t.Errorf("got %s", show(r))
	}
}

// The time to parse a text must not grow faster than its length. Each of these
// texts once took seconds.
func TestHostileInput(t *testing.T) {
	t.Parallel()
	for i, piece := range []string{`" `, "« ", "in 5 minutes ", "at 9 ", "every Mon, ", "in Telegram ", "a ",
		"remind me ", "' x", "an hour and ", "в ", "please "} {
		for j, start := range []string{"", "remind me to ", "send me in Telegram "} {
			length := maxLength
			if i%3 != j { // one long text of each piece shows its time
				length /= 16
			}
			text := start + strings.Repeat(piece, (length-len(start))/len(piece))
			if r := Parse(text, noon(t)); (r.Intent == nil) == (r.Question == nil) {
				t.Errorf("%.40q: %+v", text, r)
			}
			ParseTask(text)
		}
	}
}
