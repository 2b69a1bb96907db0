# ActiveRecord makes tables by a migration, uses them, and dumps the schema it finds.
# Usage: ruby rails.rb DSN
require "active_record"
require "stringio"

ActiveRecord::Base.establish_connection(ARGV[0].sub(/\Apostgres:/, "postgresql:"))
ActiveRecord::Migration.verbose = false

class MakeShips < ActiveRecord::Migration[6.1]
  def change
    create_table :harbours, comment: "where ships lie" do |t|
      t.string :name, null: false, index: { unique: true }
      t.point :place
      t.timestamps
    end
    create_table :ships, id: :uuid do |t|
      t.string :name, limit: 40, default: "unnamed"
      t.decimal :length, precision: 6, scale: 2
      t.jsonb :more, default: {}
      t.text :flags, array: true, default: []
      t.inet :address
      t.int4range :crew
      t.virtual :loud, type: :string, as: "upper(name)", stored: true if ActiveRecord.version >= Gem::Version.new("7")
      t.references :harbour, foreign_key: { on_delete: :cascade }
      t.check_constraint "length > 0", name: "has_length"
      t.index "lower(name)", name: "ships_by_name"
      t.index :more, using: :gin
      t.index [:length, :name], where: "length > 10", order: { length: :desc }
    end
    add_column :ships, :seen, :datetime
    change_column_null :ships, :seen, false, Time.at(0)
    rename_column :ships, :seen, :met
    change_column :ships, :name, :text
  end
end

class Harbour < ActiveRecord::Base
  has_many :ships
end
class Ship < ActiveRecord::Base
  belongs_to :harbour
end

MakeShips.new.migrate(:up)
harbour = Harbour.create!(name: "Kiel", place: [1.5, 2])
ship = harbour.ships.create!(name: "Alma", length: 12.5, more: { a: [1] }, flags: %w[x y], address: "10.0.0.1", crew: 3...7, met: Time.at(0).utc)
ship.reload
puts ship.attributes.except("id", "harbour_id").inspect, harbour.reload.place.inspect
puts Ship.joins(:harbour).where("more @> ?", { a: [1] }.to_json).where("'x' = ANY (flags)").count
begin
  Harbour.create!(name: "Kiel")
rescue ActiveRecord::RecordNotUnique => e
  puts e.class, e.message.lines.first
end
begin
  ActiveRecord::Base.transaction { Ship.create!(name: "Kiel", harbour: harbour, met: Time.at(0), length: -1) }
rescue ActiveRecord::StatementInvalid => e
  puts e.message.lines.first[/violates.*/]
end
ActiveRecord::Base.transaction do
  Ship.lock("FOR UPDATE SKIP LOCKED").first
  raise ActiveRecord::Rollback
end
dumped = StringIO.new
ActiveRecord::SchemaDumper.dump(ActiveRecord::Base.connection, dumped)
puts dumped.string.lines.reject { |l| l.start_with?("# ") && !l.include?("not dump") }
c = ActiveRecord::Base.connection
puts c.tables.sort.inspect, c.views.sort.inspect, c.primary_keys("loan").inspect, c.foreign_keys("book").map(&:options).inspect
puts c.indexes("book").map { |i| [i.name, i.columns, i.unique, i.where, i.using].inspect }.sort
puts c.schema_names.inspect, c.extensions.inspect, c.encoding
c.pk_and_sequence_for("author").tap { |pk, seq| puts pk, seq.to_s }
c.reset_pk_sequence!("author")
c.disable_referential_integrity { c.execute("DELETE FROM author") }
puts c.select_value("SELECT count(*) FROM book WHERE author IS NOT NULL")
puts c.get_advisory_lock(1), c.release_advisory_lock(1)
