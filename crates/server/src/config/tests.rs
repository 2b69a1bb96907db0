use super::*;

fn dir(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("threadgres-config-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a temporary directory can be made");
    dir
}

#[test]
fn later_sources_win_and_the_default_file_says_nothing() {
    let dir = dir("order");
    write_default(&dir).unwrap();
    let config = Config::load(&dir, vec![]).unwrap();
    let mut defaults = Settings::default();
    // Where the files are is known only now.
    for id in
        [setting::CONFIG_FILE, setting::DATA_DIRECTORY, setting::HBA_FILE, setting::IDENT_FILE]
    {
        defaults.set(id, config.values.settings.get(id).clone());
    }
    assert_eq!(config.values.settings, defaults);
    config.alter_system(Some("work_mem"), Some("1MB")).unwrap();
    config.alter_system(Some("search_path"), Some(r#""a'b\", public"#)).unwrap();
    let config = Config::load(&dir, vec![("port".into(), "7".into())]).unwrap();
    let settings = &config.values.settings;
    assert_eq!(settings.int(setting::WORK_MEM), 1024);
    assert_eq!(settings.str(setting::SEARCH_PATH), r#""a'b\", public"#);
    assert_eq!(settings.int(setting::PORT), 7);
    config.alter_system(None, None).unwrap();
    let config = Config::load(&dir, vec![]).unwrap();
    assert_eq!(config.values.settings, defaults);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_bad_line_stops_a_start_and_a_reload_goes_on_with_what_was() {
    let dir = dir("bad");
    std::fs::write(dir.join(FILE), "port = 1\nwork_mem = 1MB\n").unwrap();
    let mut config = Config::load(&dir, vec![]).unwrap();
    for line in ["nonsense = 1", "work_mem", "include 'missing.conf'"] {
        std::fs::write(dir.join(FILE), format!("work_mem = 2MB\n{line}\n")).unwrap();
        let error = Config::load(&dir, vec![]).err().unwrap();
        assert!(error.message().contains(&dir.display().to_string()), "{line}: {error}");
        let error = config.reload().unwrap_err();
        assert!(error.message().ends_with("no changes were applied"), "{line}: {error}");
        assert_eq!(config.values.settings.int(setting::WORK_MEM), 1024, "{line}");
        let entries = config.file_entries().unwrap();
        assert!(entries.iter().any(|e| e.error.is_some() && e.line == 2), "{line}");
    }
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_bad_value_or_one_that_needs_a_restart_keeps_its_setting_only() {
    let dir = dir("some");
    std::fs::write(dir.join(FILE), "port = 1\nwork_mem = 1MB\n").unwrap();
    let mut config = Config::load(&dir, vec![]).unwrap();
    let text = "work_mem = 2MB\nport = 2\nmaintenance_work_mem = 1kB\nwork_mem = 3MB\n";
    std::fs::write(dir.join(FILE), text).unwrap();
    assert!(Config::load(&dir, vec![]).is_err());
    assert!(!config.reload().unwrap());
    let settings = &config.values.settings;
    assert_eq!(settings.int(setting::WORK_MEM), 3072);
    assert_eq!(settings.int(setting::PORT), 1, "needs a restart");
    assert!(config.origins[usize::from(setting::PORT.0)].pending_restart);
    let entries = config.file_entries().unwrap();
    let seen: Vec<(bool, bool)> = entries.iter().map(|e| (e.applied, e.error.is_some())).collect();
    assert_eq!(seen, [(false, false), (false, true), (false, true), (true, false)]);
    std::fs::write(dir.join(FILE), "port = 1\n").unwrap();
    assert!(config.reload().unwrap());
    assert!(!config.origins[usize::from(setting::PORT.0)].pending_restart);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn files_include_others() {
    let dir = dir("include");
    std::fs::create_dir_all(dir.join("conf.d")).unwrap();
    std::fs::write(dir.join("conf.d/b.conf"), "work_mem = 5MB\n").unwrap();
    std::fs::write(dir.join("conf.d/a.conf"), "work_mem = 4MB\nmy.own = 'x'\n").unwrap();
    std::fs::write(dir.join("conf.d/c.txt"), "nonsense\n").unwrap();
    std::fs::write(dir.join("more.conf"), "port = 7\n").unwrap();
    let text = "include_dir = 'conf.d'\ninclude 'more.conf'\ninclude_if_exists 'missing.conf'\n";
    std::fs::write(dir.join(FILE), text).unwrap();
    let config = Config::load(&dir, vec![]).unwrap();
    assert_eq!(config.values.settings.int(setting::WORK_MEM), 5120);
    assert_eq!(config.values.settings.int(setting::PORT), 7);
    assert_eq!(config.values.custom.get("my.own").map(String::as_str), Some("x"));
    let origin = &config.origins[usize::from(setting::WORK_MEM.0)];
    assert!(origin.place.as_ref().unwrap().0.ends_with("conf.d/b.conf"));
    // A circle ends, and a file's own name is no way around it.
    std::fs::write(dir.join("more.conf"), "include 'postgresql.conf'\n").unwrap();
    assert!(Config::load(&dir, vec![]).is_err());
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn every_setting_of_postgresql_is_accepted() {
    let dir = dir("accepted");
    let mut text = String::new();
    for def in settings::SETTINGS.iter().filter(|def| def.context != Context::Internal) {
        let id = SettingId::find(def.name).unwrap();
        if is_place(id) || id == setting::SEARCH_PATH {
            continue;
        }
        let value = settings::show(id, &def.default.value());
        text += &format!("{} = {}\n", def.name, config_file::quote(&value));
    }
    // Settings of other versions are passed over, with a word.
    text += "io_method = worker\n";
    std::fs::write(dir.join(FILE), text).unwrap();
    let config = Config::load(&dir, vec![]).unwrap();
    let entries = config.file_entries().unwrap();
    let faults: Vec<_> = entries.iter().filter(|entry| entry.error.is_some()).collect();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!(faults[0].name.as_deref(), Some("io_method"));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn files_and_data_may_lie_apart() {
    let (etc, data) = (dir("etc"), dir("data"));
    let text = format!(
        "data_directory = '{}'\nwork_mem = 7MB\nhba_file = '{}/hba'\n",
        data.display(),
        etc.display()
    );
    std::fs::write(etc.join(FILE), text).unwrap();
    let (dir, overrides) = locate(&etc, vec![("port".into(), "7".into())]).unwrap();
    assert_eq!(dir, data);
    let config = Config::load(&dir, overrides).unwrap();
    let settings = &config.values.settings;
    assert_eq!(settings.int(setting::WORK_MEM), 7168);
    assert_eq!(settings.str(setting::HBA_FILE), etc.join("hba").display().to_string());
    assert_eq!(settings.str(setting::DATA_DIRECTORY), data.display().to_string());
    assert_eq!(shown(&data, Vec::new(), "work_mem").unwrap(), "4MB");
    std::fs::remove_dir_all(etc).unwrap();
    std::fs::remove_dir_all(data).unwrap();
}
